"""Parts of a graph do what they do in the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflare.errors import UserError
from edgeflare.models.graph_parts import crossing_tensors, extract, extract_tails, isolate
from edgeflare.models.tflite_graph import Graph
from edgeflare_protos.kernel_sets import Kernels
from networks import Kind, pair_of
from tampering import (
    COMPRESSED,
    ORIGINAL,
    edited,
    example_input,
    original_input,
    residual_model,
    run,
    whole,
)

MODELS = {
    "int8": (COMPRESSED.read_bytes(), example_input()),
    "float": (ORIGINAL.read_bytes(), original_input()),
    "residual": (residual_model(), np.array([[1, -2, 3, 0.5]], np.float32)),
}


@pytest.mark.parametrize("kernels", ["xnnpack", "builtin", "reference"])
@pytest.mark.parametrize("name", MODELS)
def test_the_whole_range_is_the_model(name: str, kernels: Kernels) -> None:
    content, values = MODELS[name]
    graph = Graph(content)
    part = extract(graph, 0, len(graph.operators) - 1)
    assert (part.inputs, part.outputs) == (graph.inputs, graph.outputs)
    (wanted,), (got,) = run(content, [values], kernels), run(part.content, [values], kernels)
    assert got.tobytes() == wanted.tobytes()


@settings(max_examples=12, deadline=None)
@given(st.data())
@pytest.mark.parametrize("name", MODELS)
def test_a_beginning_and_the_rest_are_the_model(name: str, data: st.DataObject) -> None:
    content, values = MODELS[name]
    graph = Graph(content)
    last = len(graph.operators) - 1
    cut = data.draw(st.integers(0, last - 1))
    beginning, rest = extract(graph, 0, cut), extract(graph, cut + 1, last)
    state = dict(zip(beginning.outputs, run(beginning.content, [values]), strict=True))
    state[graph.inputs[0]] = values
    (got,) = run(rest.content, [state[tensor] for tensor in rest.inputs])
    assert got.tobytes() == run(content, [values])[0].tobytes()


def test_what_skips_over_a_cut_crosses_it() -> None:
    graph = Graph(residual_model())
    assert [graph.tensors[t].name for t in extract(graph, 0, 1).outputs] == ["a", "b"]
    assert [graph.tensors[t].name for t in extract(graph, 2, 3).inputs] == ["a", "b", "x"]


@pytest.mark.parametrize("name", MODELS)
def test_isolated_operators_do_what_they_do_in_the_whole(name: str) -> None:
    content, values = MODELS[name]
    graph = Graph(content)
    state = whole(graph, values, "xnnpack", content)
    part = isolate(graph, [one.index for one in graph.layers])
    outputs = run(part.content, [state[tensor] for tensor in part.inputs])
    for tensor, got in zip(part.outputs, outputs, strict=True):
        assert got.tobytes() == state[tensor].tobytes()


def test_an_isolated_operator_reads_nothing_of_the_others() -> None:
    graph = Graph(residual_model())
    part = isolate(graph, [0, 2])
    zero, one = np.zeros((1, 4), np.float32), np.ones((1, 4), np.float32)
    negated, added = run(part.content, [one, zero, one])
    assert (negated == -1).all()
    assert (added == 1).all()


def test_exposed_tensors_are_put_out_too() -> None:
    content, values = MODELS["int8"]
    graph = Graph(content)
    state = whole(graph, values, "xnnpack", content)
    everything = [tensor for one in graph.layers for tensor in one.outputs]
    part = extract(graph, 0, len(graph.operators) - 1, expose=everything)
    assert set(part.outputs) == set(everything)
    for tensor, got in zip(part.outputs, run(part.content, [values]), strict=True):
        assert got.tobytes() == state[tensor].tobytes()


def test_a_part_is_small_and_a_model_of_its_own() -> None:
    content, _ = MODELS["int8"]
    graph = Graph(content)
    part = extract(graph, 1, 1)
    assert len(part.content) < len(content) / 20
    alone = Graph(part.content)
    assert [one.name for one in alone.operators] == ["MAX_POOL_2D"]


def test_what_cannot_be_cut_is_said_in_one_line() -> None:
    content, _ = MODELS["int8"]

    def unread(model: Any) -> None:
        made = model.subgraphs[0].operators[0].outputs[0]
        tensor = model.subgraphs[0].tensors[made]
        tensor.type, tensor.name = schema.TensorType.COMPLEX64, b"Stateful/" * 20 + b"FFT"

    graph = Graph(edited(content, unread), "odd.tflite")
    words = (
        r"odd\.tflite cannot be cut.*: tensor '….{37}FFT' of CONV_2D \(operator 0\), "
        "complex64, cannot be read"
    )
    with pytest.raises(UserError, match=words):
        extract(graph, 0, 0)
    with pytest.raises(UserError, match=words):
        isolate(graph, [0, 2])
    assert extract(graph, 0, 1).outputs == graph.operators[1].outputs
    with pytest.raises(ValueError, match="no operators"):
        extract(Graph(content), 3, 99)


def test_what_prepares_constants_goes_along() -> None:
    """Float16 weights: a DEQUANTIZE makes what the next operator reads."""
    content, values = MODELS["float"]
    graph = Graph(content)
    weights = graph.operators[0].inputs[1]

    def halve(model: Any) -> None:
        subgraph = model.subgraphs[0]
        code, half = schema.OperatorCodeT(), schema.TensorT()
        code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.DEQUANTIZE
        code.version = 3
        model.operatorCodes.append(code)
        known = subgraph.tensors[weights]
        half.name, half.shape, half.type = b"half", known.shape, schema.TensorType.FLOAT16
        half.buffer = len(model.buffers)
        buffer = schema.BufferT()
        raw = graph.values(weights).astype(np.float16).tobytes()
        buffer.data = np.frombuffer(raw, np.uint8)
        model.buffers.append(buffer)
        known.buffer = 0
        subgraph.tensors.append(half)
        prepare = schema.OperatorT()
        prepare.opcodeIndex = len(model.operatorCodes) - 1
        prepare.inputs, prepare.outputs = [len(subgraph.tensors) - 1], [weights]
        subgraph.operators.insert(0, prepare)

    changed = edited(content, halve)
    halved = Graph(changed)
    assert halved.preparing == {0}
    assert halved.layers[0].name == "CONV_2D"
    state = whole(halved, values, "builtin", changed)
    part = extract(halved, 1, 1)
    assert part.inputs == halved.inputs
    (got,) = run(part.content, [values], "builtin")
    assert got.tobytes() == state[part.outputs[0]].tobytes()
    with pytest.raises(ValueError, match="only prepare"):
        extract(halved, 0, 0)


@pytest.mark.parametrize("kind", ["mobilenet", "resnet"])
def test_ends_that_begin_in_the_middle_end_as_the_whole_does(kind: Kind) -> None:
    """Side by side in one model, with what residual connections bring along."""
    content = pair_of(kind)[0]
    graph = Graph(content)
    state = whole(graph, original_input(), "xnnpack", content)
    starts = [one.index for one in graph.layers[:-1]]
    part = extract_tails(graph, starts, graph.outputs)
    assert part.outputs == graph.outputs * len(starts)
    assert part.inputs == tuple(
        tensor for start in starts for tensor in crossing_tensors(graph, start, graph.outputs)
    )
    assert max(len(crossing_tensors(graph, start, graph.outputs)) for start in starts) > 1
    for values in run(part.content, [state[tensor] for tensor in part.inputs]):
        wanted = state[graph.outputs[0]].astype(np.float32)
        np.testing.assert_allclose(values.astype(np.float32), wanted, atol=1e-5)
