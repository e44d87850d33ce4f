"""Fitted ranges, restored weights: nearer to the original, on every runtime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.diagnose.tensor_ties import tied_tensors
from edgeflare.models.compressed_model import open_in_other_runtime
from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.quantized_range import QuantizedRange, least_error_range
from edgeflare.models.tflite_graph import Graph, GraphTensor
from edgeflare.models.tflite_writer import Writer
from edgeflare.repair.fitting import activation_ranges
from edgeflare.repair.fitting.activation_ranges import (
    averaged_range,
    fit_ranges,
    logit_range,
    summand_range,
)
from edgeflare.repair.fitting.quantized_network import MatchedLayer, QuantizedNetwork
from edgeflare.repair.fitting.weight_restoration import restore_weights
from edgeflare_protos.kernel_sets import Kernels
from fitted_networks import (
    NETS,
    JudgedNetwork,
    Net,
    judged,
    outputs,
    require_progress,
    structure,
    untold,
)
from operator_chain import ChainStep, write_tflite
from tampering import edited

_AT_MOST = {"example": 0.7, "mobilenet": 1.1, "resnet": 1.02}
"""How the error of probabilities is to change. The drawn networks were calibrated on the images
that their ranges are fitted to, so little is to be gained there."""

KERNELS: tuple[Kernels, ...] = ("xnnpack", "builtin", "reference")


@cache
def fitted(net: Net) -> tuple[JudgedNetwork, bytes]:
    found = judged(net)
    return found, fit_ranges(found.network, untold)


@pytest.mark.slow
@pytest.mark.parametrize("net", NETS)
def test_only_numbers_change(net: Net) -> None:
    known, content = fitted(net)
    before = known.network.content
    assert content != before
    assert len(content) == len(before)
    assert structure(content) == structure(before)
    graph, old = Graph(content), Graph(before)
    for tensor in (*graph.inputs, *graph.outputs):
        assert graph.tensors[tensor] == old.tensors[tensor]
    for group in tied_tensors(graph):
        assert len({graph.tensors[one].scales for one in group.tensors}) == 1
        assert len({graph.tensors[one].zero_points for one in group.tensors}) == 1
    points = [tensor.zero_points for tensor in graph.tensors if tensor.dtype == "int8"]
    assert all(-128 <= point <= 127 for one in points for point in one)


@pytest.mark.slow
@pytest.mark.parametrize("net", NETS)
def test_biases_have_the_scale_of_input_times_weights(net: Net) -> None:
    known, content = fitted(net)
    graph = Graph(content)
    weighted = [one for one in known.network.layers if one.bias is not None]
    assert len(weighted) >= 4
    for one in weighted:
        weights, bias = graph.tensors[one.weights or 0], graph.tensors[one.bias or 0]
        given = graph.tensors[one.inputs[0]].scales[0]
        assert np.allclose(bias.scales, given * np.asarray(weights.scales), rtol=1e-6)
        off = bias.real(graph.values(bias.index)) - np.asarray(one.float_bias)
        # Logits may be shifted, all of them by one amount.
        spread = off - np.median(off) if one is weighted[-1] else off
        assert (np.abs(spread) <= np.asarray(bias.scales) * 1.01).all()


@pytest.mark.slow
@pytest.mark.parametrize("net", NETS)
def test_probabilities_come_nearer_to_the_original_on_all_kernels_which_agree(net: Net) -> None:
    known, content = fitted(net)
    before = known.network.content
    for kernels in KERNELS:
        assert known.error(content, kernels) < _AT_MOST[net] * known.error(before, kernels)
        assert known.deviating(content, kernels) <= known.deviating(before, kernels)

    def apart(model: bytes) -> float:
        first, *others = (outputs(model, known.rows, one).astype(int) for one in KERNELS)
        return float(max(np.abs(first - other).mean() for other in others))

    assert apart(content) <= apart(before) + 0.05


@pytest.mark.slow
@pytest.mark.old_board
@pytest.mark.parametrize("net", NETS)
def test_it_runs_on_an_old_runtime(net: Net, old_board_python: Path, tmp_path: Path) -> None:
    known, content = fitted(net)
    path = tmp_path / "fitted.tflite"
    path.write_bytes(content)
    with open_in_other_runtime(path, f"builtin@{old_board_python}") as model:
        found = model.submit(known.rows[:50]).result()
    there = found.outputs.reshape(50, -1).argmax(axis=1)
    here = outputs(content, known.rows[:50], "builtin").argmax(axis=1)
    assert (there == here).mean() >= 0.96


@pytest.mark.slow
def test_logits_lose_no_steps_to_what_a_softmax_does_not_see() -> None:
    known, content = fitted("example")
    graph, old = Graph(content), known.network.graph
    logits = graph.operators[-1].inputs[0]
    assert graph.tensors[logits].zero_points == (-128,)
    assert graph.tensors[logits].scales[0] < 0.7 * old.tensors[logits].scales[0]


# Damage.
def wrong_scale(graph: Graph, edit: InPlaceEdit) -> None:
    tensor = graph.tensors[graph.operators[2].inputs[1]]
    edit.set_quantization(tensor.index, [1.3 * one for one in tensor.scales], tensor.zero_points)


def zeroed_bias(graph: Graph, edit: InPlaceEdit) -> None:
    bias = graph.operators[8].inputs[2]
    edit.set_values(bias, np.zeros_like(graph.values(bias)))


def clipped_channel(graph: Graph, edit: InPlaceEdit) -> None:
    weights = graph.operators[2].inputs[1]
    values = np.array(graph.values(weights)).astype(np.int8)
    values[3] = np.clip(values[3], -30, 30)
    edit.set_values(weights, values)


def clipped_ranges(graph: Graph, edit: InPlaceEdit) -> None:
    for tensor in (12, 13, 14, 15, 19, 20):
        known = graph.tensors[tensor]
        edit.set_quantization(tensor, [0.3 * known.scales[0]], known.zero_points)
    for operator in (2, 8, 9):  # their input's scale is a factor of theirs
        bias = graph.tensors[graph.operators[operator].inputs[2]]
        edit.set_quantization(bias.index, [0.3 * one for one in bias.scales], bias.zero_points)
        raw = np.round(graph.values(bias.index).astype(np.float64) / 0.3).astype(np.int32)
        edit.set_values(bias.index, raw)


FAULTS = (wrong_scale, zeroed_bias, clipped_channel, clipped_ranges)


@pytest.mark.slow
@pytest.mark.parametrize("damage", FAULTS)
def test_a_damaged_file_comes_out_as_a_sound_one_does(
    damage: Callable[[Graph, InPlaceEdit], None],
) -> None:
    known, sound = fitted("example")
    edit = InPlaceEdit(known.network.content)
    damage(known.network.graph, edit)
    damaged = edit.content()
    assert known.error(damaged) > 1.5 * known.error(known.network.content)
    content = fit_ranges(known.network.with_content(damaged), untold)
    assert known.error(content) < 1.1 * known.error(sound)
    assert known.deviating(content) <= known.deviating(sound) + 1


@pytest.mark.slow
def test_a_tensor_without_a_float_counterpart_keeps_its_range() -> None:
    known, sound = fitted("example")
    operator, tensor = 8, 20

    def activate(model: Any, activation: int) -> None:
        options = model.subgraphs[0].operators[operator].builtinOptions
        options.fusedActivationFunction = activation

    kinds = schema.ActivationFunctionType
    original = edited(known.network.original, lambda model: activate(model, kinds.RELU6))
    network = known.network
    other = QuantizedNetwork(network.content, original, network.rows, network.original_rows)
    found = Graph(fit_ranges(other, untold)).tensors
    assert found[tensor] == network.graph.tensors[tensor]
    assert found[12] == Graph(sound).tensors[12] != network.graph.tensors[12]


@pytest.mark.slow
def test_progress_counts_inputs_and_ranges() -> None:
    network, told = judged("example").network, list[tuple[int, int]]()
    fit_ranges(network, lambda *far: told.append(far))
    require_progress(told)
    assert told[-1][1] > len(network.rows)


def probabilities(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def loss(logits: NDArray[np.float64], tried: QuantizedRange) -> float:
    step = (tried.high - tried.low) / 255
    rounded = tried.low + step * np.clip(np.round((logits - tried.low) / step), 0, 255)
    return float(np.sqrt(((probabilities(rounded) - probabilities(logits)) ** 2).mean()))


@pytest.mark.slow
@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.floats(-50, 50))
def test_probabilities_suffer_less_than_from_the_range_of_all_logits(
    seed: int, shift: float
) -> None:
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(600, 10)) * 3 + shift
    logits[:, 0] -= 25  # a class far below all others takes most of a range
    logits[np.arange(600), rng.integers(1, 10, 600)] += rng.uniform(0, 12, 600)
    found = logit_range(logits)
    assert found is not None
    whole = QuantizedRange(min(0.0, logits.min()), max(0.0, logits.max()))
    assert found.high - found.low < 0.8 * (whole.high - whole.low)
    assert loss(logits, found) < loss(logits, whole)


@pytest.mark.slow
def test_the_range_moves_with_the_logits() -> None:
    """Logits that are alike have none."""
    logits = np.random.default_rng(4).normal(size=(200, 5)) * 4
    first, second = logit_range(logits), logit_range(logits + 10)
    assert first is not None
    assert second is not None
    assert second.low == pytest.approx(first.low + 10)
    assert logit_range(np.zeros((20, 10))) is None


@pytest.mark.slow
def test_what_an_activation_cuts_off_of_a_sum_gets_no_steps() -> None:
    """Summands that are all zero keep the known range."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=20_000)
    others = np.maximum(rng.normal(size=20_000), 0) / 4
    known = QuantizedRange(float(values.min()), float(values.max()))
    alone = least_error_range(values, known)
    found = summand_range(values, others, (0.0, np.inf), known)
    assert alone.low < 0.8 * values.min()
    assert found.low > 0.6 * values.min()

    def error(tried: QuantizedRange) -> float:
        made = np.maximum(tried.nearest(values) + others, 0)
        return float(((made - np.maximum(values + others, 0)) ** 2).sum())

    assert error(found) < 0.7 * error(alone)
    known = QuantizedRange(-1.0, 2.0)
    assert summand_range(np.zeros(10), np.ones(10), (0.0, np.inf), known) == known


@pytest.mark.parametrize("seed", range(4))
def test_the_range_of_averaged_values_is_nearly_as_good_as_the_best_of_all(seed: int) -> None:
    """Values on both sides of zero, a few of them far out."""
    rng = np.random.default_rng(seed)
    values = rng.standard_t(3, (40, 64)) + rng.normal(0.5, 1.0, (40, 1))
    known = QuantizedRange(float(values.min()), float(values.max()))

    def error(one: QuantizedRange) -> float:
        made = one.nearest(one.nearest(values).mean(axis=1))
        return float(((made - values.mean(axis=1)) ** 2).sum())

    shares = np.arange(2, 22) / 20
    every = [
        QuantizedRange(known.low * low, known.high * high) for low in shares for high in shares
    ]
    found = error(averaged_range(values, known))
    assert found <= error(known)
    assert found <= 1.5 * min(map(error, every))
    assert averaged_range(np.zeros((2, 8)), known) == known


def test_kept_values_do_not_hold_all_of_an_input() -> None:
    """A view of a few of them would keep the whole tensor in memory, once for each input."""
    values = np.arange(1000, dtype=np.float32)
    some = activation_ranges._some(values, 10, 3)
    assert len(some) <= 10
    assert set(some) <= set(values)
    assert not np.shares_memory(some, values)


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


@pytest.mark.parametrize("name", NAMES)
def test_biases_follow_the_scales_of_restored_weights(name: str) -> None:
    """Weights are cut off by scales that are too fine, and biases are in steps of these."""
    network, layer, tensor = with_weights(name)
    graph, fine = network.graph, [one / 3 for one in tensor.scales]
    edit = InPlaceEdit(network.content)
    steps = np.clip(3 * graph.values(tensor.index).astype(int), -127, 127)
    edit.set_values(tensor.index, steps.astype(np.int8))
    edit.set_quantization(tensor.index, fine, tensor.zero_points)
    finer = 3 * graph.values(layer.bias or 0)
    edit.set_values(layer.bias or 0, finer)
    content = restore_weights(network.with_content(edit.content()))
    now = Graph(content)
    step = np.multiply(now.tensors[tensor.index].scales, now.tensors[layer.inputs[0]].scales[0])
    found = now.values(layer.bias or 0) * step
    assert np.abs(found - np.asarray(layer.float_bias)).max() < 2 * max(step)


def _softmax_of_pairs(content: bytes) -> bytes:
    """Return a network whose logits are reshaped, so that each two are the choices of a softmax."""
    graph, writer = Graph(content), Writer(content)
    logits = graph.tensors[graph.outputs[0]].as_interface
    pairs = logits.shape[-1] // 2, 2
    shape = writer.constant("shape", np.array(pairs, np.int32))
    shaped = writer.tensor(replace(logits, name="pairs", shape=pairs))
    writer.operator("RESHAPE", [graph.outputs[0], shape], shaped, newShape=list(pairs))
    quantized = replace(logits, scale=1 / 256, zero_point=-128) if logits.scale else logits
    chances = writer.tensor(replace(quantized, name="chances", shape=pairs))
    writer.operator("SOFTMAX", [shaped], chances, version=2, beta=1.0)
    writer.begin_and_end(graph.inputs, [chances])
    return writer.content()


def test_logits_that_are_reshaped_are_those_of_each_softmax() -> None:
    """No choice of the pair with the lesser logits is cut off."""
    weights = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    bias = np.array([20, 20, 0, 0], np.float32)
    chain = [ChainStep("logits", "FULLY_CONNECTED", ("image",), (1, 4), weights, bias)]
    ranges = {"image": (0.0, 255 / 256), "logits": (-40.0, 40.0)}
    rows = np.random.default_rng(1).integers(-128, 128, (60, 6)).astype(np.int8)
    real = (rows.astype(np.float32) + 128) / np.float32(256)
    content, original = (
        _softmax_of_pairs(write_tflite(chain, (1, 6), of)) for of in (ranges, None)
    )
    fitted = fit_ranges(QuantizedNetwork(content, original, rows, real), untold)
    wanted = outputs(original, real)
    before, after = ((outputs(of, rows) + 128.0) / 256 - wanted for of in (content, fitted))
    assert np.abs(after).max() < np.abs(before).max()
