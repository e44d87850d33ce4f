"""Faults in a runtime: float16 as it is simulated, and the nodes and options that a fault is in."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.models.tflite_graph import Graph
from edgeflare_agent.runtime.model_runtime import Acceleration, Options
from edgeflare_protos.kernel_sets import Kernels
from fault_injection import Planted
from networks import pair_of
from runtime_fault_injection import HALF_LARGEST, HALVES, falls_back, faulty
from tampering import InterpreterProbe, constant_of, edited, with_constant

Network = tuple[bytes, Graph]


@pytest.fixture(scope="module")
def network() -> Network:
    content = pair_of("normalized")[0]
    return content, Graph(content)


LAST_ACCELERATED = 4
"""The operator before the first one that the GPU accelerator refuses."""

IMAGE = np.random.default_rng(0).random((1, 28, 28, 1), dtype=np.float32)


def everywhere(*_: object) -> bool:
    return True


def first_output(content: bytes) -> NDArray[Any]:
    """Return what the first operator of the network puts out, in a changed file too."""

    def expose(model: Any) -> None:
        model.subgraphs[0].outputs = [made]

    graph = Graph(content)
    names = {one.name: one.index for one in graph.tensors}
    made = names["conv_2d_0"]
    return InterpreterProbe(edited(content, expose), "builtin").run([IMAGE])[0]


def test_activations_have_the_digits_of_float16(network: Network) -> None:
    exact = first_output(network[0])
    rounded = first_output(HALVES["float16 activations"](network[0], everywhere))
    assert rounded.tolist() == exact.astype(np.float16).astype(np.float32).tolist()
    assert rounded.tolist() != exact.tolist()


def test_values_end_where_float16_does(network: Network) -> None:
    steep = network[0]
    for position in (1, 2):
        name = constant_of(steep, 0, position)
        steep = with_constant(steep, name, partial(np.multiply, 65536))
    exact = first_output(steep)
    kept = first_output(HALVES["float16 overflow"](steep, everywhere))
    assert exact.max() > HALF_LARGEST
    assert kept.tolist() == np.minimum(exact, np.float32(HALF_LARGEST)).tolist()


def test_what_comes_behind_an_operator_that_is_refused_falls_back(network: Network) -> None:
    operators = network[1].operators
    fallen = [one.index for one in operators if falls_back(network[1], one)]
    assert fallen == list(range(LAST_ACCELERATED + 1, len(operators)))


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
    place: str, accelerated: bool, there: list[tuple[Kernels, bool, bool]], network: Network
) -> None:
    """`there` has some of the kernels, float32 and fallback that bring it about."""
    content, graph = network
    operator = LAST_ACCELERATED if accelerated else LAST_ACCELERATED + 2
    layer = graph.tensors[graph.operators[operator].outputs[0]].name
    planted = Planted("weights negated", layer, place=place)
    for kernels, float32, fallback in there:
        options = Options(kernels, acceleration=Acceleration(float32, fallback))
        assert faulty(content, options, planted) != content
    elsewhere = [Options("xnnpack"), Options("builtin"), Options("reference")]
    if place == "gpu in float16":
        elsewhere.append(Options("gpu", acceleration=Acceleration(float32=True)))
    if not accelerated or place == "silent fallback":
        elsewhere.append(Options("gpu", acceleration=Acceleration(fallback=False)))
    for options in elsewhere:
        assert faulty(content, options, planted) == content
