"""Weights that were damaged come back, and others stay as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.matched_layers import MatchedLayer
from edgeflare.repair.fitting.weight_restoration import restore_weights
from fitted_networks import NETS, Net, judged

NETWORK = judged("mobilenet").network
LAYERS = {one.name: one for one in NETWORK.layers if one.float_weights is not None}


def axis_of(layer: MatchedLayer) -> int:
    return NETWORK.graph.tensors[layer.weights or 0].axis


def real(content: bytes, layer: MatchedLayer) -> Any:
    graph = Graph(content)
    return graph.tensors[layer.weights or 0].real(graph.values(layer.weights or 0))


@pytest.mark.parametrize("net", NETS)
def test_a_sound_file_is_the_same_to_the_byte(net: Net) -> None:
    network = judged(net).network
    assert restore_weights(network) == network.content


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_weights_that_are_rounded_up_or_down_on_purpose_stay(name: str) -> None:
    layer = LAYERS[name]
    tensor = NETWORK.graph.tensors[layer.weights or 0]
    along = [1] * len(tensor.shape)
    along[tensor.axis] = -1
    steps = layer.float_weights / np.reshape(tensor.scales, along if len(tensor.scales) > 1 else ())
    up = np.random.default_rng(2).random(tensor.shape) < 0.5
    edit = InPlaceEdit(NETWORK.content)
    rounded = np.clip(np.where(up, np.ceil(steps), np.floor(steps)), -127, 127)
    edit.set_values(tensor.index, rounded.astype(np.int8))
    assert restore_weights(NETWORK.with_content(edit.content())) == edit.content()


@pytest.mark.parametrize("factor", [0.5, 1.05, 1.5])
@pytest.mark.parametrize("name", sorted(LAYERS))
def test_scales_that_are_wrong_come_back_and_raw_weights_stay(name: str, factor: float) -> None:
    layer = LAYERS[name]
    tensor = NETWORK.graph.tensors[layer.weights or 0]
    edit = InPlaceEdit(NETWORK.content)
    edit.set_quantization(tensor.index, [factor * one for one in tensor.scales], tensor.zero_points)
    found = Graph(restore_weights(NETWORK.with_content(edit.content())))
    assert np.array_equal(found.values(tensor.index), NETWORK.graph.values(tensor.index))
    assert np.allclose(found.tensors[tensor.index].scales, tensor.scales, rtol=0.03)


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_a_channel_that_was_clipped_is_rounded_anew_and_no_other(name: str) -> None:
    layer = LAYERS[name]
    values = np.array(NETWORK.graph.values(layer.weights or 0)).astype(np.int8)
    channels = np.moveaxis(values, axis_of(layer), 0)
    channels[1] = np.clip(channels[1], -20, 20)
    edit = InPlaceEdit(NETWORK.content)
    edit.set_values(layer.weights or 0, values)
    content = restore_weights(NETWORK.with_content(edit.content()))
    scales = np.asarray(NETWORK.graph.tensors[layer.weights or 0].scales)
    off = np.abs(np.moveaxis(real(content, layer) - layer.float_weights, axis_of(layer), 0))
    assert off[1].max() <= 0.51 * scales.max()
    if len(scales) > 1:
        others = np.delete(np.arange(len(channels)), 1)
        before = np.moveaxis(real(edit.content(), layer), axis_of(layer), 0)
        after = np.moveaxis(real(content, layer), axis_of(layer), 0)
        assert np.array_equal(after[others], before[others])
