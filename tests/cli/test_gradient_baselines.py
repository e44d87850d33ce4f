"""The strategies `deepxplore`, `fgsm` and `pgd` on the example pair."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.whitebox]

Call = Callable[..., Any]

PAIR = Path(__file__).parents[2] / "examples" / "fashion_lenet4"
SHORT = ("--first", "2", "--shrink", "0", "--fail-on", "none", "--device", "emulated-xnnpack")


@pytest.mark.parametrize(
    "chosen",
    [
        *(("deepxplore", "--set", f"constraint={one}") for one in ("light", "occl", "blackout")),
        ("deepxplore", "--set", "constraint=none"),
        ("fgsm", "--set", "radius=32"),
        ("pgd", "--set", "radius=32", "--set", "step=4"),
    ],
    ids=["light", "occl", "blackout", "none", "fgsm", "pgd"],
)
def test_what_translations_foretell_is_all_that_the_device_is_asked_about(
    call: Call, chosen: tuple[str, ...], tmp_path: Path
) -> None:
    pytest.importorskip("jax")
    ended = call("search", PAIR, "--strategy", *chosen, "--out", tmp_path / "run", *SHORT)
    assert ended.code == 0, ended.err
    document = json.loads((tmp_path / "run" / "run.json").read_text())
    assert document["plan"]["strategy"] == chosen[0]
    found = [one for one in document["findings"] if one["operators"]]
    assert document["totals"]["queries"] == len(found)  # so the arms contradicted nothing
    if chosen[-1] == "constraint=none":
        assert found
    for one in found:
        assert one["operators"] in (["deepxplore-" + chosen[-1].partition("=")[2]], [chosen[0]])


def test_bad_parameters_are_refused_before_anything_is_opened(call: Call, tmp_path: Path) -> None:
    for given, message in (
        ("constraint=fog", "expected one of light, occl, blackout, none"),
        ("threshold=2", "expected a number, at least 0, at most 1"),
        ("lambda1=-1", "expected a number, at least 0"),
    ):
        out = tmp_path / "run"
        ended = call("search", PAIR, "--strategy", "deepxplore", "--set", given, "--out", out)
        assert ended.code == 2
        assert message in " ".join(ended.err.split())
        assert not out.exists()


def test_a_rectangle_outside_of_the_images_is_refused(call: Call, tmp_path: Path) -> None:
    pytest.importorskip("jax")
    chosen = ("deepxplore", "--set", "occl_top=40")
    ended = call("search", PAIR, "--strategy", *chosen, "--out", tmp_path / "run", *SHORT)
    assert ended.code == 2
    assert "lies outside of inputs of 28 × 28 × 1" in " ".join(ended.err.split())
