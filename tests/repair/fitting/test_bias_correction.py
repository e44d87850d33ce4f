"""Biases and weights that are off come back, and others stay as they are."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.tflite_graph import Graph, GraphTensor
from edgeflare.repair.fitting.activation_ranges import fit_ranges
from edgeflare.repair.fitting.bias_correction import fit_biases
from edgeflare.repair.fitting.captured_tensors import captured
from edgeflare.repair.fitting.matched_layers import MatchedLayer
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.weight_restoration import restore_weights
from edgeflare_protos.kernel_sets import Kernels
from fitted_networks import NETS, JudgedNetwork, Net, judged, require_progress, structure, untold


@cache
def corrected(net: Net) -> tuple[JudgedNetwork, bytes]:
    found = judged(net)
    return found, fit_biases(found.network, untold)


def mean_error(known: JudgedNetwork, content: bytes) -> float:
    """Mean error of the logits' means over the images that nothing was fitted with."""
    network, last = known.network, known.network.layers[-2]
    graph = Graph(content)
    raw = captured(content, known.rows[:80], [last.output])[last.output]
    tensor = graph.tensors[last.output]
    made = (raw.astype(np.float64) - tensor.zero_points[0]) * tensor.scales[0]
    there = captured(network.original, known.original_rows[:80], [last.original_output])
    wanted = there[last.original_output].astype(np.float64)
    return float(np.abs((made - wanted).mean(axis=0)).mean())


@pytest.mark.slow
@pytest.mark.parametrize("net", ["example", "resnet"])
def test_only_biases_change_and_means_come_nearer(net: Net) -> None:
    known, content = corrected(net)
    before, after = known.network.graph, Graph(content)
    assert len(content) == len(known.network.content)
    assert structure(content) == structure(known.network.content)
    biases = {one.bias for one in known.network.layers if one.bias is not None}
    for tensor in before.tensors:
        if tensor.constant and tensor.index not in biases:
            assert np.array_equal(after.values(tensor.index), before.values(tensor.index))
        if tensor.index not in biases:
            assert after.tensors[tensor.index] == tensor
    assert mean_error(known, content) < 0.7 * mean_error(known, known.network.content)


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["xnnpack", "builtin", "reference"])
def test_all_kernels_run_it(kernels: Kernels) -> None:
    known, content = corrected("example")
    assert known.error(content, kernels) < 1.3 * known.error(known.network.content, kernels)


@pytest.mark.slow
def test_zeroed_biases_come_back() -> None:
    known, content = corrected("resnet")
    network = known.network
    edit = InPlaceEdit(network.content)
    for layer in network.layers[1:5]:
        if layer.bias is not None:
            edit.set_values(layer.bias, np.zeros_like(network.graph.values(layer.bias)))
    damaged = edit.content()
    assert known.error(damaged) > 2 * known.error(network.content)
    assert fit_biases(network.with_content(damaged), untold) == content


@pytest.mark.slow
def test_logits_that_fitted_ranges_shift_stay_shifted() -> None:
    known = judged("example")
    ranged = known.network.with_content(fit_ranges(known.network, untold))
    content = fit_biases(ranged, untold)
    bias = ranged.graph.tensors[ranged.graph.operators[9].inputs[2]]
    before, after = (bias.real(Graph(one).values(bias.index)) for one in (ranged.content, content))
    shifted = before - np.asarray(known.network.layers[-2].float_bias)
    assert np.abs(shifted).min() > 1.0
    assert np.abs(after - before).max() < 0.5
    assert known.error(content) < 1.5 * known.error(ranged.content)


@pytest.mark.slow
def test_progress_counts_layers() -> None:
    network, told = judged("example").network, list[tuple[int, int]]()
    fit_biases(network, lambda *far: told.append(far))
    require_progress(told)
    assert told[-1][1] == sum(one.bias is not None for one in network.layers)


# Weights that were damaged.

NAMES = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


def with_weights(name: str) -> tuple[QuantizedNetwork, MatchedLayer, GraphTensor]:
    """A network, its last layer of a name, and the tensor of its weights."""
    network = judged("mobilenet").network
    layer = [one for one in network.layers if one.name == name][-1]
    return network, layer, network.graph.tensors[layer.weights or 0]


def along_channels(content: bytes, weights: int) -> Any:
    """The real weights of a layer, their channels first."""
    tensor = Graph(content).tensors[weights]
    return np.moveaxis(tensor.real(Graph(content).values(weights)), tensor.axis, 0)


@pytest.mark.parametrize("net", NETS)
def test_a_sound_file_is_the_same_to_the_byte(net: Net) -> None:
    network = judged(net).network
    assert restore_weights(network) == network.content


@pytest.mark.parametrize("name", NAMES)
def test_weights_that_are_rounded_up_or_down_on_purpose_stay(name: str) -> None:
    network, layer, tensor = with_weights(name)
    along = [1] * len(tensor.shape)
    along[tensor.axis] = -1
    steps = layer.float_weights / np.reshape(tensor.scales, along if len(tensor.scales) > 1 else ())
    up = np.random.default_rng(2).random(tensor.shape) < 0.5
    edit = InPlaceEdit(network.content)
    rounded = np.clip(np.where(up, np.ceil(steps), np.floor(steps)), -127, 127)
    edit.set_values(tensor.index, rounded.astype(np.int8))
    assert restore_weights(network.with_content(edit.content())) == edit.content()


@pytest.mark.parametrize("name", NAMES)
def test_scales_that_are_wrong_come_back_and_raw_weights_stay(name: str) -> None:
    network, _, tensor = with_weights(name)
    for factor in (0.5, 1.05, 1.5):
        edit = InPlaceEdit(network.content)
        wrong = [factor * one for one in tensor.scales]
        edit.set_quantization(tensor.index, wrong, tensor.zero_points)
        found = Graph(restore_weights(network.with_content(edit.content())))
        assert np.array_equal(found.values(tensor.index), network.graph.values(tensor.index))
        assert np.allclose(found.tensors[tensor.index].scales, tensor.scales, rtol=0.03)


@pytest.mark.parametrize("name", NAMES)
def test_a_channel_that_was_clipped_is_rounded_anew_and_no_other(name: str) -> None:
    network, layer, tensor = with_weights(name)
    values = np.array(network.graph.values(tensor.index)).astype(np.int8)
    channels = np.moveaxis(values, tensor.axis, 0)
    channels[1] = np.clip(channels[1], -20, 20)
    edit = InPlaceEdit(network.content)
    edit.set_values(tensor.index, values)
    content = restore_weights(network.with_content(edit.content()))
    before, after = (along_channels(one, tensor.index) for one in (edit.content(), content))
    assert layer.float_weights is not None
    off = np.abs(after - np.moveaxis(layer.float_weights, tensor.axis, 0))
    assert off[1].max() <= 0.51 * max(tensor.scales)
    if len(tensor.scales) > 1:
        others = np.delete(np.arange(len(channels)), 1)
        assert np.array_equal(after[others], before[others])
