"""Weights rounded by GPTQ bring real networks nearer to their originals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dynamic_range import quantize_weights
from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.captured_tensors import captured
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.weight_rounding import RoundedLayer, fit_rounding, round_original
from edgeflare_protos.kernel_sets import Kernels
from operator_chain import Floats, Step, write_tflite
from tampering import COMPRESSED, EXAMPLE, ORIGINAL, Change, constant_of, run, with_constant

_LAYERS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


def _ignore(_done: int, _of: int) -> None:
    pass


def _example(first: int, last: int, content: bytes | None = None) -> QuantizedNetwork:
    """The example's pair, with some of its seeds to fit with."""
    compressed = COMPRESSED.read_bytes() if content is None else content
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        images = arrays["images"][first:last].astype(np.float32)
    graph = Graph(compressed)
    real = (images / np.float32(255)).astype(np.float32)
    rows: NDArray[np.generic] = real
    given = graph.tensors[graph.inputs[0]]
    if given.scales:
        raw = np.rint(real / given.scales[0]) + given.zero_points[0]
        rows = np.clip(raw, -128, 127).astype(np.int8)
    return QuantizedNetwork(compressed, ORIGINAL.read_bytes(), rows, real)


def _layer_errors(network: QuantizedNetwork, content: bytes) -> dict[int, float]:
    """Mean squared error of each layer's output against the original's, by operator."""
    layers = [layer for layer in network.layers if layer.name in _LAYERS]
    graph = network.graph
    got = captured(content, network.rows, [one.output for one in layers])
    wanted = captured(
        network.original, network.original_rows, [one.original_output for one in layers]
    )
    errors = {}
    for one in layers:
        raw = got[one.output].reshape(-1, *graph.tensors[one.output].shape)
        real = graph.tensors[one.output].real(raw).ravel()
        errors[one.operator] = float(
            np.mean((real - wanted[one.original_output].ravel().astype(np.float64)) ** 2)
        )
    return errors


@pytest.fixture(scope="module")
def fitted() -> bytes:
    return fit_rounding(_example(0, 100), _ignore)


@pytest.mark.slow
def test_every_layer_comes_nearer_to_the_original_on_other_inputs(fitted: bytes) -> None:
    network = _example(100, 200)
    before, after = _layer_errors(network, network.content), _layer_errors(network, fitted)
    assert all(after[operator] < before[operator] for operator in before), (before, after)
    assert after[max(after)] < 0.8 * before[max(before)]


@pytest.mark.slow
def test_nothing_changes_but_weights_and_biases(fitted: bytes) -> None:
    content = COMPRESSED.read_bytes()
    before, after = Graph(content), Graph(fitted)
    assert len(fitted) == len(content)
    assert (after.tensors, after.operators) == (before.tensors, before.operators)
    changeable = {
        tensor for one in before.operators if one.name in _LAYERS for tensor in one.inputs[1:]
    }
    weights = {one.inputs[1] for one in before.operators if one.name in _LAYERS}
    for tensor in (one.index for one in before.tensors if one.constant):
        same = (before.values(tensor) == after.values(tensor)).all()
        assert same or tensor in changeable
        assert not same or tensor not in weights
        if tensor in weights:
            assert np.abs(after.values(tensor).astype(int)).max() <= 127


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["xnnpack", "builtin", "reference"])
def test_the_file_runs_on_all_kernels(fitted: bytes, kernels: Kernels) -> None:
    network = _example(0, 20)
    same = [
        run(fitted, [row[None]], kernels)[0].argmax() == run(network.original, [real])[0].argmax()
        for row, real in zip(network.rows, network.original_rows[:, None], strict=True)
    ]
    assert sum(same) >= 19


@pytest.mark.slow
def test_weights_and_biases_of_the_file_do_not_matter_and_chance_neither(fitted: bytes) -> None:
    """All is derived from the original and from the inputs: damage is mended on the way."""
    damaged = COMPRESSED.read_bytes()
    for operator, position in ((0, 2), (2, 1), (8, 2)):
        name = constant_of(damaged, operator, position)
        damaged = with_constant(damaged, name, np.zeros_like)
    seen: list[tuple[int, int]] = []
    network = _example(0, 100, damaged)
    again = Graph(fit_rounding(network, lambda done, of: seen.append((done, of))))
    first = Graph(fitted)
    for one in first.tensors:
        if one.constant:
            assert (again.values(one.index) == first.values(one.index)).all()
    assert seen == [(done, 4) for done in range(5)]


@pytest.mark.slow
def test_a_layer_with_wrong_scales_becomes_as_good_as_a_sound_one(fitted: bytes) -> None:
    content, graph = COMPRESSED.read_bytes(), Graph(COMPRESSED.read_bytes())
    weights = graph.tensors[graph.operators[2].inputs[1]]
    edit = InPlaceEdit(content)
    wrong = [0.6 * scale for scale in weights.scales]
    edit.set_quantization(weights.index, wrong, weights.zero_points)
    mended = fit_rounding(_example(0, 100, edit.content()), _ignore)
    network = _example(100, 200)
    sound, after = _layer_errors(network, fitted), _layer_errors(network, mended)
    assert all(after[operator] < 1.1 * sound[operator] for operator in sound), (sound, after)


@pytest.mark.slow
def test_logits_that_were_shifted_for_their_range_stay_shifted(fitted: bytes) -> None:
    """A softmax does not see a shift, and ranges that were fitted before count on theirs."""
    content = COMPRESSED.read_bytes()
    first = Graph(fitted)
    _, weights, bias = first.operators[9].inputs
    steps = np.rint(2.0 / np.asarray(first.tensors[bias].scales)).astype(np.int32)
    shifted = with_constant(content, constant_of(content, 9, 2), lambda values: values - steps)
    again = Graph(fit_rounding(_example(0, 100, shifted), _ignore))
    moved = again.values(bias).astype(int) - first.values(bias).astype(int)
    assert np.abs(moved + steps).max() <= 1
    assert (again.values(weights) == first.values(weights)).all()


@pytest.mark.slow
def test_depthwise_convolutions_and_one_scale_for_a_layer() -> None:
    network, others = _small_network(seed=3, count=80), _small_network(seed=3, count=80, skip=80)
    assert [layer.name for layer in network.layers if layer.float_weights is not None] == [
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
        "FULLY_CONNECTED",
    ]
    (dense,) = (one for one in network.graph.layers if one.name == "FULLY_CONNECTED")
    assert len(network.graph.tensors[dense.inputs[1]].scales) == 1
    changed = fit_rounding(network, _ignore)
    before, after = _layer_errors(others, network.content), _layer_errors(others, changed)
    assert all(after[operator] < before[operator] for operator in before), (before, after)
    assert sum(after.values()) < 0.9 * sum(before.values())


def test_a_layer_that_is_exact_stays_to_the_byte() -> None:
    """Weights and biases are whole steps, and the original has the inputs that the layer has."""
    rng = np.random.default_rng(0)
    ranges = {"image": (0.0, 255 / 256), "dense": (-8.0, 8.0)}
    whole = rng.integers(-127, 128, (4, 6)).astype(np.float32)
    whole[:, 0] = 127
    bias = rng.integers(-999, 999, 4).astype(np.float32) / np.float32(2**15)
    weights = whole / np.float32(128)
    steps = [Step("dense", "FULLY_CONNECTED", ("image",), (1, 4), weights, bias)]
    rows = rng.integers(-128, 128, (30, 6)).astype(np.int8)
    real = (rows.astype(np.float32) + 128) / np.float32(256)
    content = write_tflite(steps, (1, 6), ranges)
    network = QuantizedNetwork(content, write_tflite(steps, (1, 6)), rows, real)
    assert fit_rounding(network, _ignore) == content


@pytest.mark.slow
def test_weights_of_a_dynamic_range_model_are_rounded_too() -> None:
    network = _example(0, 60, quantize_weights(ORIGINAL.read_bytes()))
    others = _example(100, 160, network.content)
    changed = fit_rounding(network, _ignore)
    before, after = _layer_errors(others, network.content), _layer_errors(others, changed)
    assert all(after[operator] < before[operator] for operator in before), (before, after)


def test_a_network_without_int8_weights_is_refused(refusal: Callable[..., str]) -> None:
    message = refusal(fit_rounding, _example(0, 2, ORIGINAL.read_bytes()), _ignore)
    assert "no int8 weights" in message
    message = refusal(round_original, COMPRESSED.read_bytes(), _example(0, 2).rows, _ignore)
    assert "no float32 weights" in message


@pytest.mark.slow
def test_weights_of_the_original_are_rounded_for_a_computation_in_float() -> None:
    content = ORIGINAL.read_bytes()
    graph, network, others = Graph(content), _example(0, 100), _example(100, 200)
    seen: list[tuple[int, int]] = []
    rounded = round_original(
        content, network.original_rows, lambda done, of: seen.append((done, of))
    )
    assert [one.operator for one in rounded] == [
        one.index for one in graph.layers if one.name in _LAYERS
    ]
    nearest = []
    for one in rounded:
        weights = graph.values(one.weights).astype(np.float32)
        assert (one.steps.shape, one.steps.dtype.name) == (weights.shape, "int8")
        assert np.abs(one.steps.astype(int)).max() <= 127
        flat = weights.reshape(len(weights), -1)
        assert np.allclose(one.scales, np.abs(flat).max(axis=1) / 127, rtol=1e-6)
        steps = np.rint(flat / one.scales[:, None]).reshape(weights.shape)
        assert (steps != one.steps).any()
        nearest.append(
            RoundedLayer(one.operator, one.weights, None, steps.astype(np.int8), one.scales, None)
        )
    assert seen[0] == (0, 100)
    assert seen[-1] == (100, 100)
    rows, output = others.original_rows, graph.operators[-2].outputs[0]
    wanted = captured(content, rows, [output])[output].astype(np.float64)
    fitted, plain = (
        captured(_with_layers(content, layers), rows, [output])[output].astype(np.float64)
        for layers in (rounded, nearest)
    )
    assert ((fitted - wanted) ** 2).mean() < 0.5 * ((plain - wanted) ** 2).mean()


def _with_layers(content: bytes, layers: tuple[RoundedLayer, ...] | list[RoundedLayer]) -> bytes:
    """A float model that computes with rounded weights."""
    names = [tensor.name for tensor in Graph(content).tensors]
    for one in layers:
        along = (-1, *(1,) * (one.steps.ndim - 1))
        real = one.steps.astype(np.float32) * one.scales.reshape(along)
        content = with_constant(content, names[one.weights], _returning(real))
        if one.bias is not None and one.float_bias is not None:
            content = with_constant(content, names[one.bias], _returning(one.float_bias))
    return content


def _returning(values: NDArray[Any]) -> Change:
    return lambda _: values


def _small_network(seed: int, count: int, skip: int = 0) -> QuantizedNetwork:
    """A convolution, a depthwise one and a dense layer, with random weights and smooth inputs."""
    rng = np.random.default_rng(seed)

    def drawn(*shape: int) -> Floats:
        fan_in = np.prod(shape[1:]) if shape[0] > 1 else np.prod(shape[1:3])
        values: Floats = (rng.normal(size=shape) * np.sqrt(2 / fan_in)).astype(np.float32)
        return values

    def bias(channels: int) -> Floats:
        return np.full(channels, 0.1, np.float32)

    steps = [
        Step("first", "CONV_2D", ("image",), (1, 8, 8, 6), drawn(6, 3, 3, 2), bias(6), "RELU"),
        Step("second", "DEPTHWISE_CONV_2D", ("first",), (1, 8, 8, 6), drawn(1, 3, 3, 6), bias(6)),
        Step("mean", "MEAN", ("second",), (1, 6)),
        Step("dense", "FULLY_CONNECTED", ("mean",), (1, 5), drawn(5, 6), bias(5)),
    ]
    original = write_tflite(steps, (1, 8, 8, 2))
    smooth = rng.random((200, 2, 2, 2)).repeat(4, axis=1).repeat(4, axis=2)
    rows = np.rint(255 * (0.8 * smooth + 0.2 * rng.random((200, 8, 8, 2)))) - 128
    real = ((rows + 128) / 255).astype(np.float32)
    outputs = [one.outputs[0] for one in Graph(original).layers]
    made = captured(original, real, outputs)
    ranges = {
        step.name: (min(0.0, float(made[tensor].min())), max(0.0, float(made[tensor].max())))
        for step, tensor in zip(steps, outputs, strict=True)
    }
    content = write_tflite(steps, (1, 8, 8, 2), {"image": (0.0, 1.0), **ranges})
    some = slice(skip, skip + count)
    return QuantizedNetwork(content, original, rows[some].astype(np.int8), real[some])
