"""Layers of two networks, matched; and what they read, captured or part by part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflare.core.tensor import pack_rows
from edgeflare.models import model_probe
from edgeflare.models.model_probe import HostProbe
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting import tensor_capture
from edgeflare.repair.fitting.im2col import (
    grouped_weights,
    unfolded_inputs,
    ungrouped_weights,
)
from edgeflare.repair.fitting.quantized_network import MatchedLayer, matched_layers
from edgeflare.repair.fitting.tensor_capture import StepwiseExecution, captured
from graph_writer import GraphWriter, write_state_model
from networks import Kind, pair_of
from tampering import (
    COMPRESSED,
    ORIGINAL,
    constant_of,
    edited,
    example_input,
    run,
    whole,
    with_constant,
)


def graphs(kind: Kind) -> tuple[Graph, Graph]:
    original, compressed = pair_of(kind)
    return Graph(compressed, "the compressed model"), Graph(original, "the original")


def dequantized(graph: Graph, tensor: int) -> Any:
    return graph.tensors[tensor].real(graph.values(tensor))


def half_a_step(graph: Graph, layer: MatchedLayer, axis: int) -> Any:
    along = [1, 1, 1, 1]
    along[axis] = -1
    return np.asarray(graph.tensors[cast("int", layer.weights)].scales).reshape(along) / 2


@pytest.mark.parametrize("kind", ["mobilenet", "resnet"])
def test_each_layer_has_the_weights_that_its_own_were_rounded_from(kind: Kind) -> None:
    compressed, original = graphs(kind)
    layers = matched_layers(compressed, original)
    assert [one.operator for one in layers] == [one.index for one in compressed.layers]
    convolutions = [one for one in layers if "CONV" in one.name]
    assert convolutions
    for one in convolutions:
        assert one.weights is not None
        assert one.bias is not None
        assert one.float_weights is not None
        axis = 3 if one.name == "DEPTHWISE_CONV_2D" else 0
        off = np.abs(dequantized(compressed, one.weights) - one.float_weights)
        assert (off <= half_a_step(compressed, one, axis) * 1.001).all()
        steps = np.asarray(compressed.tensors[one.bias].scales)
        assert (np.abs(dequantized(compressed, one.bias) - one.float_bias) <= steps * 0.51).all()


def test_layers_without_weights_have_the_activations_of_both_graphs() -> None:
    compressed, original = graphs("resnet")
    sums = [one for one in matched_layers(compressed, original) if one.name == "ADD"]
    assert len(sums) == 3
    for one in sums:
        assert (one.weights, one.bias, one.float_weights, one.float_bias) == (None,) * 4
        assert one.output in compressed.operators[one.operator].outputs
        names = [compressed.tensors[tensor].name for tensor in one.inputs]
        assert names == [original.tensors[tensor].name for tensor in one.original_inputs]


def test_weights_in_half_precision_are_those_that_a_dequantize_reads() -> None:
    values = np.arange(12, dtype=np.float32).reshape(3, 4) / 3

    def dense(half: bool) -> Graph:
        graph = GraphWriter()
        x, y = graph.tensor("x", (1, 4), "FLOAT32"), graph.tensor("y", (1, 3), "FLOAT32")
        weights = graph.tensor("w", (3, 4), "FLOAT32", data=None if half else values)
        if half:
            stored = graph.constant("half", values.astype(np.float16))
            graph.operator("DEQUANTIZE", [stored], [weights], schema.DequantizeOptionsT(), 2)
        graph.operator("FULLY_CONNECTED", [x, weights, -1], [y], schema.FullyConnectedOptionsT())
        return Graph(graph.content([x], [y]))

    for compressed, original in ((True, False), (False, True), (True, True)):
        graph = dense(compressed)
        (layer,) = matched_layers(graph, dense(original))
        assert graph.tensors[cast("int", layer.weights)].constant
        assert layer.float_weights is not None
        assert np.allclose(layer.float_weights, values, rtol=1e-3)
        assert layer.bias is None


def test_a_layer_without_counterpart_is_named(refusal: Callable[..., str]) -> None:
    def widen(model: Any) -> None:
        for tensor in model.subgraphs[0].tensors:
            if list(tensor.shape) == [1, 120]:
                tensor.shape = [1, 60]

    other = edited(ORIGINAL.read_bytes(), widen)
    compressed = Graph(COMPRESSED.read_bytes(), "compressed.tflite")
    message = refusal(matched_layers, compressed, Graph(other, "other.tflite"))
    assert "operator 8, FULLY_CONNECTED" in message
    assert "other.tflite" in message


CONTENT = COMPRESSED.read_bytes()
ROWS = np.concatenate([example_input(seed) for seed in range(3)])


def test_tensors_of_each_input_are_those_of_the_runtime() -> None:
    graph = Graph(CONTENT)
    tensors = [graph.inputs[0], *(one.outputs[0] for one in graph.layers)]
    found = captured(CONTENT, ROWS, tensors)
    assert list(found) == tensors
    for number, row in enumerate(ROWS):
        wanted = whole(graph, row[None], "builtin", CONTENT)
        for tensor in tensors:
            assert found[tensor].dtype == wanted[tensor].dtype
            assert found[tensor][number].tobytes() == wanted[tensor].tobytes()
    assert found[graph.layers[0].outputs[0]].shape == (3, 24, 24, 6)


def test_the_output_is_that_of_the_model_as_it_runs() -> None:
    (output,) = Graph(CONTENT).outputs
    made = captured(CONTENT, ROWS, [output], "reference")[output]
    wanted = [run(CONTENT, [row[None]], "reference")[0] for row in ROWS]
    assert np.array_equal(made, np.concatenate(wanted))


def test_what_cannot_be_captured_or_executed_part_by_part_is_named(
    tmp_path: Path, refusal: Callable[..., str]
) -> None:
    """A tensor that the kernels keep to themselves."""
    graph = Graph(CONTENT)
    constant = graph.operators[0].inputs[1]
    assert graph.tensors[constant].name in refusal(captured, CONTENT, ROWS, [constant])


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 2**22])
def test_a_network_with_several_inputs_is_captured_and_executed_in_parts(
    at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_probe, "_BYTES_AT_ONCE", at_once)
    content = write_state_model(tmp_path / "step.tflite", "INT8").read_bytes()
    graph, rng = Graph(content), np.random.default_rng(0)
    tensors = [graph.tensors[one].as_interface for one in graph.inputs]
    given = [rng.integers(-128, 128, (5, *one.shape[1:]), np.int8) for one in tensors]
    rows = pack_rows(tensors, given)
    with HostProbe(content, "builtin") as probe:
        wanted = [probe.run([one[None] for one in step]) for step in zip(*given, strict=True)]
    found = captured(content, rows, graph.outputs)
    execution = StepwiseExecution(graph, rows)
    execution.advance(graph, graph.layers[-1].index)
    for at, step in enumerate(wanted):
        for tensor, values in zip(graph.outputs, step, strict=True):
            assert (found[tensor][at] == values.reshape(found[tensor][at].shape)).all()
    for tensor in graph.fed(graph.layers[-1]):
        assert len(execution.values(tensor)) == 5


# Part by part.

_INPUTS = np.concatenate([example_input(0), example_input(1)])


@pytest.mark.slow
def test_every_operator_reads_what_it_reads_in_the_whole() -> None:
    """The residual network's shortcuts skip over parts."""
    content = pair_of("resnet")[1]
    graph = Graph(content)
    states = [whole(graph, one[None], "builtin", content) for one in _INPUTS]
    execution = StepwiseExecution(graph, _INPUTS)
    for one in graph.layers:
        if one.name in ("ADD", "FULLY_CONNECTED"):
            execution.advance(graph, one.index)
            for tensor in graph.fed(one):
                wanted = np.stack([state[tensor] for state in states])
                assert (execution.values(tensor) == wanted).all()


def test_what_was_executed_keeps_its_constants_and_what_follows_has_the_new_ones() -> None:
    content = COMPRESSED.read_bytes()
    changed = content
    for operator in (0, 2):
        changed = with_constant(changed, constant_of(content, operator, 2), lambda bias: bias + 99)
    second_only = with_constant(content, constant_of(content, 2, 2), lambda bias: bias + 99)
    graph, both = Graph(content), Graph(changed)
    execution = StepwiseExecution(graph, _INPUTS)
    execution.advance(graph, 2)
    execution.advance(both, 8)
    (given,) = graph.fed(graph.operators[8])
    for number, one in enumerate(_INPUTS):
        state = whole(Graph(second_only), one[None], "builtin", second_only)
        assert (execution.values(given)[number] == state[given]).all()
        assert (state[given] != whole(both, one[None], "builtin", changed)[given]).any()


def test_large_tensors_lie_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph(COMPRESSED.read_bytes())
    one = next(one for one in graph.layers if one.name == "FULLY_CONNECTED")
    made = []
    for most in (10**9, 0):
        monkeypatch.setattr(tensor_capture, "_IN_MEMORY", most)
        execution = StepwiseExecution(graph, _INPUTS)
        execution.advance(graph, one.index)
        made.append(execution.values(one.inputs[0]))
    assert isinstance(made[1], np.memmap)
    assert not isinstance(made[0], np.memmap)
    assert (made[0] == made[1]).all()


def test_tensors_that_nothing_reads_any_more_are_dropped() -> None:
    graph = Graph(COMPRESSED.read_bytes())
    execution = StepwiseExecution(graph, _INPUTS)
    execution.advance(graph, 3)
    with pytest.raises(KeyError):
        execution.values(graph.inputs[0])
    execution.advance(graph, 3)  # nothing is left to do
    assert execution.values(graph.operators[3].inputs[0]).shape == (
        2,
        *graph.tensors[graph.operators[3].inputs[0]].shape,
    )


@pytest.mark.parametrize("at_once", [1, 2**22])
def test_an_input_that_the_network_cannot_take_is_named(
    at_once: int, refusal: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part that fails: here a GATHER of an element that is not there, alone or with others."""
    monkeypatch.setattr(model_probe, "_BYTES_AT_ONCE", at_once)
    writer = GraphWriter()
    x = writer.tensor("x", (1, 1), "INT32")
    table = writer.constant("table", np.zeros((4, 2), np.float32))
    y, z = (writer.tensor(name, (1, 1, 2), "FLOAT32") for name in "yz")
    writer.operator("GATHER", [table, x], [y], schema.GatherOptionsT())
    writer.operator("NEG", [y], [z])
    graph = Graph(writer.content([x], [z]))
    execution = StepwiseExecution(graph, np.array([[[3]], [[7]]], np.int32))
    assert "input 1" in refusal(execution.advance, graph, 1)


# Rows and weights multiply to what the runtime's operators put out.

_COUNT = 2


@settings(max_examples=30)
@given(st.data())
def test_a_convolution_is_a_product(data: st.DataObject) -> None:
    groups = data.draw(st.integers(1, 3), "groups")
    of_group = data.draw(st.integers(1, 2), "input channels of a group")
    outputs = groups * data.draw(st.integers(1, 2), "output channels of a group")
    height, width, options, spans = _geometry(data, schema.Conv2DOptionsT())
    shape = (outputs, *spans, of_group)
    _check("CONV_2D", (1, height, width, groups * of_group), shape, options, outputs)


@settings(max_examples=30)
@given(st.data())
def test_a_depthwise_convolution_is_a_product_for_each_channel(data: st.DataObject) -> None:
    channels, multiplier = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    height, width, options, spans = _geometry(data, schema.DepthwiseConv2DOptionsT())
    options.depthMultiplier = multiplier
    outputs = channels * multiplier
    shape = (1, *spans, outputs)
    _check("DEPTHWISE_CONV_2D", (1, height, width, channels), shape, options, outputs)


@settings(max_examples=20)
@given(given_=st.sampled_from([(1, 6), (3, 6), (1, 2, 3), (2, 3, 6)]), outputs=st.integers(1, 4))
def test_a_dense_layer_is_a_product(given_: tuple[int, ...], outputs: int) -> None:
    options = schema.FullyConnectedOptionsT()
    _check("FULLY_CONNECTED", given_, (outputs, 6), options, outputs)


@pytest.mark.parametrize("operator", [0, 2, 8, 9])
def test_real_values_of_the_int8_example_give_its_layers(operator: int) -> None:
    """Zeros pad what a layer reads, also where its zero point is another number."""
    content = COMPRESSED.read_bytes()
    graph = Graph(content)
    rng = np.random.default_rng(1)
    seen = graph.tensors[graph.inputs[0]]
    state = whole(graph, rng.integers(-128, 128, seen.shape).astype(np.int8), "builtin", content)
    one = graph.operators[operator]
    fed, weights, bias = (graph.tensors[tensor] for tensor in one.inputs)
    rows = unfolded_inputs(graph, operator, fed.real(state[fed.index])[None])
    real = grouped_weights(graph, operator, weights.real(graph.values(weights.index)))
    computed = rows[0] @ real[0].T + bias.real(graph.values(bias.index))
    output = graph.tensors[one.outputs[0]]
    got = output.real(state[output.index]).reshape(computed.shape)
    (scale,), (zero_point,) = output.scales, output.zero_points
    low, high = (-128 - zero_point) * scale, (127 - zero_point) * scale
    low = max(low, 0.0) if graph.options(operator)["fusedActivationFunction"] else low
    assert np.abs(np.clip(computed, low, high) - got).max() <= 0.501 * scale


def _geometry(data: st.DataObject, options: Any) -> tuple[int, int, Any, tuple[int, int]]:
    height, width = (data.draw(st.integers(4, 8), "size") for _ in range(2))
    spans = data.draw(st.integers(1, 3), "rows"), data.draw(st.integers(1, 3), "columns")
    options.padding = data.draw(st.sampled_from([schema.Padding.SAME, schema.Padding.VALID]))
    # Kernels for dilated convolutions know no strides beside them.
    dilated = data.draw(st.booleans(), "dilated")
    other = [data.draw(st.integers(1, 3), "stride or dilation") for _ in range(2)]
    if dilated:
        other = [min(size, 3 if span < 3 else 1) for size, span in zip(other, spans, strict=True)]
    options.strideH, options.strideW = (1, 1) if dilated else other
    options.dilationHFactor, options.dilationWFactor = other if dilated else (1, 1)
    return height, width, options, spans


def _check(
    name: str,
    given_: tuple[int, ...],
    shape: tuple[int, ...],
    options: Any,
    outputs: int,
) -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=shape).astype(np.float32)
    values = rng.normal(size=(_COUNT, *given_)).astype(np.float32)
    writer = GraphWriter()
    x, w = writer.tensor("x", given_, "FLOAT32"), writer.constant("w", weights)
    b = writer.constant("b", np.zeros(outputs, np.float32))
    # The runtime gives the output its shape.
    y = writer.tensor("y", (1, *(1,) * (len(shape) - 2), outputs), "FLOAT32")
    writer.operator(name, [x, w, b], [y], options)
    content = writer.content([x], [y])
    graph = Graph(content)
    wanted = [run(content, [one], "builtin")[0].reshape(-1, outputs) for one in values]
    rows = unfolded_inputs(graph, 0, values)
    assert (unfolded_inputs(graph, 0, values, 3) == rows[:, ::3]).all()
    grouped = grouped_weights(graph, 0, weights)
    computed = np.matmul(rows, grouped.transpose(0, 2, 1)).transpose(1, 0, 2)
    np.testing.assert_allclose(
        computed.reshape(-1, outputs), np.concatenate(wanted), rtol=1e-4, atol=1e-5
    )
    assert (ungrouped_weights(graph, 0, grouped) == weights).all()
