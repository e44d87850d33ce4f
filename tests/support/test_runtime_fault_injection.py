"""Faults in a runtime: float16 as it is simulated, and the nodes and options that a fault is in."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.models.tflite_graph import Graph
from edgeflare_agent.runtime.session_options import Acceleration, Options
from edgeflare_protos.kernel_sets import Kernels
from fault_injection import Planted
from networks import pair_of
from runtime_fault_injection import HALF_LARGEST, HALVES, falls_back, faulty
from tampering import InterpreterProbe, constant_of, edited, with_constant

FLOAT = pair_of("normalized")[0]
GRAPH = Graph(FLOAT)
LAST_ACCELERATED = 4
"""The operator before the first one that the GPU accelerator refuses."""

IMAGE = np.random.default_rng(0).random((1, 28, 28, 1), dtype=np.float32)


def everywhere(*_: object) -> bool:
    return True


def output_of(content: bytes, operator: int) -> NDArray[Any]:
    """Return what an operator of the network puts out, in a changed file too."""
    made = GRAPH.operators[operator].outputs[0]

    def expose(model: Any) -> None:
        model.subgraphs[0].outputs = [made]

    probe = InterpreterProbe(edited(content, expose), "builtin")
    return probe.run([IMAGE])[0]


def test_activations_have_the_digits_of_float16() -> None:
    exact = output_of(FLOAT, 0)
    rounded = output_of(HALVES["float16 activations"](FLOAT, everywhere), 0)
    assert rounded.tolist() == exact.astype(np.float16).astype(np.float32).tolist()
    assert rounded.tolist() != exact.tolist()


def test_values_end_where_float16_does() -> None:
    steep = FLOAT
    for position in (1, 2):
        steep = with_constant(steep, constant_of(FLOAT, 0, position), partial(np.multiply, 65536))
    exact = output_of(steep, 0)
    kept = output_of(HALVES["float16 overflow"](steep, everywhere), 0)
    assert exact.max() > HALF_LARGEST
    assert kept.tolist() == np.minimum(exact, np.float32(HALF_LARGEST)).tolist()


def test_what_comes_behind_an_operator_that_is_refused_falls_back() -> None:
    fallen = [one.index for one in GRAPH.operators if falls_back(GRAPH, one)]
    assert fallen == list(range(LAST_ACCELERATED + 1, len(GRAPH.operators)))


@pytest.mark.parametrize(
    ("place", "accelerated", "there"),
    [
        ("gpu", True, [("gpu", False, False), ("gpu", True, True)]),
        ("gpu in float16", True, [("gpu", False, False), ("gpu", False, True)]),
        ("compiled cpu", False, [("gpu", False, True), ("compiled-cpu", False, False)]),
        ("compiled cpu", True, [("npu", False, True), ("compiled-cpu", False, False)]),
        ("silent fallback", True, [("gpu", True, True), ("compiled-cpu", False, False)]),
        ("micro", True, [("micro", False, False)]),
    ],
)
def test_a_fault_is_only_where_it_is_planted(
    place: str, accelerated: bool, there: list[tuple[Kernels, bool, bool]]
) -> None:
    """`there` has some of the kernels, float32 and fallback that bring it about."""
    operator = LAST_ACCELERATED if accelerated else LAST_ACCELERATED + 2
    layer = GRAPH.tensors[GRAPH.operators[operator].outputs[0]].name
    planted = Planted("weights negated", layer, place=place)
    for kernels, float32, fallback in there:
        options = Options(kernels, acceleration=Acceleration(float32, fallback))
        assert faulty(FLOAT, options, planted) != FLOAT
    others: tuple[Kernels, ...] = ("xnnpack", "builtin", "reference")
    for kernels in others:
        assert faulty(FLOAT, Options(kernels), planted) == FLOAT
    if place == "gpu in float16":
        exact = Options("gpu", acceleration=Acceleration(float32=True))
        assert faulty(FLOAT, exact, planted) == FLOAT
    if not accelerated or place == "silent fallback":
        alone = Options("gpu", acceleration=Acceleration(fallback=False))
        assert faulty(FLOAT, alone, planted) == FLOAT
