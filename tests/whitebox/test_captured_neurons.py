"""Neurons by the tensors that a runtime captures: which layers have some, and what covers them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from edgeflare.models.model_probe import HostProbe, ProbeRefused, Values
from edgeflare.models.tflite_graph import Graph
from edgeflare.whitebox.captured_neurons import CapturedNeurons
from edgeflare.whitebox.neuron_coverage import WITHOUT_NEURONS, covered_at

EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"
THRESHOLDS = (0.0, 0.5)


class Blind:
    """A probe of an agent that is too old to capture: it returns the outputs alone."""

    given: tuple[int, ...] = (0,)
    captures = False

    def __init__(self, graph: Graph) -> None:
        self.made = graph.outputs

    def run(self, inputs: Sequence[Values]) -> tuple[Values, ...]:
        raise AssertionError(f"nothing is to be run, and {inputs} was")

    def close(self) -> None:
        pass


@pytest.mark.slow
@pytest.mark.parametrize("name", ["original", "compressed"])
def test_the_neurons_are_the_channels_of_layers_with_values_of_their_own(name: str) -> None:
    content = (EXAMPLE / f"{name}.tflite").read_bytes()
    graph = Graph(content)
    given = graph.tensors[graph.inputs[0]]
    row = np.random.default_rng(0).integers(0, 100, given.shape).astype(given.dtype)
    with HostProbe(content, "builtin", capture=True) as probe:
        neurons = CapturedNeurons(graph, probe, THRESHOLDS)
        found = neurons.covered([row])
        made = dict(zip(probe.made, probe.run([row]), strict=True))
    layers = [one for one in graph.layers if one.name not in WITHOUT_NEURONS]
    assert {one.name for one in layers} >= {"CONV_2D", "FULLY_CONNECTED", "SOFTMAX"}
    assert neurons.count == sum(made[one.outputs[0]].shape[-1] for one in layers)
    assert found.shape == (2, neurons.count)
    assert (found == covered_at([made[one.outputs[0]] for one in layers], THRESHOLDS)).all()
    assert 0.0 < found[1].mean() < found[0].mean() < 1.0


def test_a_runtime_that_captures_nothing_is_refused() -> None:
    graph = Graph((EXAMPLE / "compressed.tflite").read_bytes())
    with pytest.raises(ProbeRefused, match="captures no tensor"):
        CapturedNeurons(graph, Blind(graph), THRESHOLDS)
