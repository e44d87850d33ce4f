"""A release gate: the quantized model decides as its original does, except where that is known.

pytest examples/pytest --edgeflare-device emulated-xnnpack
"""

from pathlib import Path

from edgeflare.pytest_plugin import EdgeFlare, assert_decides_alike

PAIR = Path(__file__).parents[1] / "fashion_lenet4"


def test_the_kernels_of_the_device_change_no_decision(edgeflare: EdgeFlare) -> None:
    result = edgeflare.search(PAIR, limit=3, total_queries=300)

    assert_decides_alike(result, fail_on="kernel", allow=0.05)


def test_quantization_changes_no_confident_decision(edgeflare: EdgeFlare) -> None:
    result = edgeflare.search(PAIR, limit=3, total_queries=300, min_strength=0.2)

    assert_decides_alike(result)
