"""Neuron coverage, held to DeepXplore's words and to its laws, and by what a runtime captures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

from edgeflare.models.model_probe import HostProbe, ProbeRefused, Values
from edgeflare.models.tflite_graph import Graph
from edgeflare.whitebox.baselines.neuron_coverage import (
    WITHOUT_NEURONS,
    CapturedNeurons,
    covered_at,
    covered_neurons,
    scaled_means,
)
from tampering import EXAMPLE

LAYERS = st.lists(
    arrays(np.int16, array_shapes(min_dims=1, max_dims=4, max_side=4)), min_size=1, max_size=3
)
THRESHOLDS = st.lists(st.floats(0.0, 0.99), min_size=1, max_size=4)


def as_published(layer: NDArray[np.generic], threshold: float) -> list[bool]:
    """`scale` and `update_coverage` of the published code, written out; of one input."""
    values = layer.astype(float)
    spread = values.max() - values.min()
    channels = range(values.shape[-1])
    if spread == 0:
        return [False for _ in channels]
    scaled = (values - values.min()) / spread
    return [bool(np.mean(scaled[..., at]) > threshold) for at in channels]


@given(LAYERS, st.sampled_from([0.0, 0.25, 0.5, 0.75]))
def test_a_neuron_is_covered_where_the_mean_of_its_scaled_channel_exceeds_the_threshold(
    layers: list[NDArray[np.int16]], threshold: float
) -> None:
    covered = covered_neurons(layers, threshold)
    near = [abs(scaled_means(one) - threshold) < 1e-9 for one in layers]
    wanted = [one for layer in layers for one in as_published(layer, threshold)]
    assert covered.shape == (sum(one.shape[-1] for one in layers),)
    assert (covered == wanted)[~np.concatenate(near)].all()


@given(LAYERS, THRESHOLDS)
def test_a_higher_threshold_covers_no_more(
    layers: list[NDArray[np.int16]], thresholds: list[float]
) -> None:
    covered = covered_at(layers, sorted(thresholds))
    assert (covered[1:] <= covered[:-1]).all()
    for row, threshold in zip(covered, sorted(thresholds), strict=True):
        assert (row == covered_neurons(layers, threshold)).all()


@given(LAYERS, st.integers(-100, 100), st.sampled_from([0.25, 0.5, 2.0, 8.0]))
def test_the_scale_and_the_zero_of_a_layer_change_nothing(
    layers: list[NDArray[np.int16]], zero: int, scale: float
) -> None:
    real = [(one.astype(np.float64) - zero) * scale for one in layers]
    for one, other in zip(layers, real, strict=True):
        assert scaled_means(one) == pytest.approx(scaled_means(other))


@given(LAYERS)
def test_each_layer_that_is_not_flat_covers_some_neuron_at_zero(
    layers: list[NDArray[np.int16]],
) -> None:
    for one in layers:
        assert covered_neurons([one], 0.0).any() == (one.min() != one.max())


# As a runtime captures them.


class Blind:
    """A probe that returns no tensor."""

    given: tuple[int, ...] = (0,)
    made: tuple[int, ...] = ()

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
        neurons = CapturedNeurons(graph, probe, (0.0, 0.5))
        found = neurons.covered([row])
        made = dict(zip(probe.made, probe.run([row]), strict=True))
    layers = [one for one in graph.layers if one.name not in WITHOUT_NEURONS]
    assert {one.name for one in layers} >= {"CONV_2D", "FULLY_CONNECTED", "SOFTMAX"}
    assert neurons.count == sum(made[one.outputs[0]].shape[-1] for one in layers)
    assert found.shape == (2, neurons.count)
    assert (found == covered_at([made[one.outputs[0]] for one in layers], (0.0, 0.5))).all()
    assert 0.0 < found[1].mean() < found[0].mean() < 1.0


def test_a_runtime_that_captures_nothing_is_refused() -> None:
    graph = Graph((EXAMPLE / "compressed.tflite").read_bytes())
    with pytest.raises(ProbeRefused, match="captures no tensor"):
        CapturedNeurons(graph, Blind(), (0.0, 0.5))
