"""Graphs are read as they are, and parts of them do what they do in the whole."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.core.task import OutputMaker
from edgeflare.errors import UserError
from edgeflare.models.graph_parts import crossing_tensors, extract, extract_tails, isolate
from edgeflare.models.model_variables import Variable, model_variables
from edgeflare.models.tflite_graph import Graph
from edgeflare_protos.kernel_sets import Kernels
from graph_writer import GraphWriter
from networks import Kind, pair_of
from prepared_weights import with_prepared_weights
from public_cases import CASES
from state_pairs import write_variable_pair
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


def test_a_graph_is_read_as_it_is() -> None:
    graph = Graph(COMPRESSED.read_bytes())
    assert graph.operators[0].name == "CONV_2D"
    assert graph.operators[-1].name == "SOFTMAX"
    assert graph.preparing == frozenset()
    image, kernel, bias = (graph.tensors[tensor] for tensor in graph.operators[0].inputs)
    assert image.shape == (1, 28, 28, 1)
    assert image.dtype == kernel.dtype == "int8"
    assert not image.constant
    assert kernel.constant
    assert len(kernel.scales) == kernel.shape[kernel.axis] > 1
    real = kernel.real(graph.values(kernel.index))
    original = Graph(ORIGINAL.read_bytes())
    wanted = original.values(original.operators[0].inputs[1]).astype(np.float64)
    steps = np.reshape(kernel.scales, (-1, 1, 1, 1))
    assert (np.abs(real - wanted) <= 0.501 * steps).all()
    assert bias.dtype == "int32"


def test_what_is_no_graph_is_said_in_one_line() -> None:
    content = COMPRESSED.read_bytes()
    with pytest.raises(UserError, match=r"^half\.tflite: its graph cannot be read: [^\n]*$"):
        Graph(content[: len(content) // 3], "half.tflite")


def test_outputs_are_from_the_operator_before_conversions_and_reshapes() -> None:
    graph = Graph((CASES / "detection_postprocess" / "compressed.tflite").read_bytes())
    name = "TFLite_Detection_PostProcess"
    made = [OutputMaker(15, name, at, reads="strided_slice1") for at in range(4)]
    assert [graph.origin(tensor) for tensor in graph.outputs] == made
    named = graph.signature_outputs("serving_default")
    assert [named[name] for name in ("boxes", "classes", "scores", "count")] == [33, 34, 35, 36]
    (slice_of,) = graph.operators[11].outputs
    assert graph.operators[12].inputs == (slice_of,)
    assert graph.origin(graph.operators[12].outputs[0]) == graph.origin(slice_of)
    assert graph.origin(graph.inputs[0]) is None


# Parts.


@cache
def model(name: str) -> tuple[bytes, NDArray[Any]]:
    """A file, and an input of it."""
    if name == "residual":
        return residual_model(), np.array([[1, -2, 3, 0.5]], np.float32)
    if name == "float":
        return ORIGINAL.read_bytes(), original_input()
    return (COMPRESSED.read_bytes() if name == "int8" else pair_of("mobilenet")[1]), example_input()


MODELS = ("int8", "float", "residual", "mobilenet")


@pytest.mark.parametrize("kernels", ["xnnpack", "builtin", "reference"])
@pytest.mark.parametrize("name", MODELS)
def test_the_whole_range_is_the_model(name: str, kernels: Kernels) -> None:
    content, values = model(name)
    graph = Graph(content)
    part = extract(graph, 0, len(graph.operators) - 1)
    assert (part.inputs, part.outputs) == (graph.inputs, graph.outputs)
    (wanted,), (got,) = run(content, [values], kernels), run(part.content, [values], kernels)
    assert got.tobytes() == wanted.tobytes()


@settings(max_examples=12, deadline=None)
@given(st.data())
@pytest.mark.parametrize("name", MODELS)
def test_a_beginning_and_the_rest_are_the_model(name: str, data: st.DataObject) -> None:
    """Also where residual connections cross the cut."""
    content, values = model(name)
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
def test_isolated_operators_and_exposed_tensors_are_those_of_the_whole(name: str) -> None:
    content, values = model(name)
    graph = Graph(content)
    state = whole(graph, values, "xnnpack", content)
    everything = [tensor for one in graph.layers for tensor in one.outputs]
    exposed = extract(graph, 0, len(graph.operators) - 1, expose=everything)
    assert set(exposed.outputs) == set(everything)
    for part in (exposed, isolate(graph, [one.index for one in graph.layers])):
        outputs = run(part.content, [state[tensor] for tensor in part.inputs])
        for tensor, got in zip(part.outputs, outputs, strict=True):
            assert got.tobytes() == state[tensor].tobytes()


def test_an_isolated_operator_reads_nothing_of_the_others() -> None:
    part = isolate(Graph(residual_model()), [0, 2])
    zero, one = np.zeros((1, 4), np.float32), np.ones((1, 4), np.float32)
    negated, added = run(part.content, [one, zero, one])
    assert (negated == -1).all()
    assert (added == 1).all()


def test_a_part_is_small_and_a_model_of_its_own() -> None:
    content, _ = model("int8")
    part = extract(Graph(content), 1, 1)
    assert len(part.content) < len(content) / 20
    assert [one.name for one in Graph(part.content).operators] == ["MAX_POOL_2D"]


def test_what_cannot_be_cut_is_said_in_one_line() -> None:
    content, _ = model("int8")

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
    content, values = with_prepared_weights(ORIGINAL.read_bytes(), ["DEQUANTIZE"]), original_input()
    graph = Graph(content)
    first = graph.layers[0]
    assert first.name == "CONV_2D"
    assert graph.preparing == set(range(first.index))
    state = whole(graph, values, "builtin", content)
    part = extract(graph, first.index, first.index)
    assert part.inputs == graph.inputs
    (got,) = run(part.content, [values], "builtin")
    assert got.tobytes() == state[part.outputs[0]].tobytes()
    with pytest.raises(ValueError, match="only prepare"):
        extract(graph, 0, 0)


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


# Variables.


def found(file: Path | bytes, signature: str = "") -> list[Variable]:
    content = file if isinstance(file, bytes) else file.read_bytes()
    return list(model_variables(content, "theirs.tflite", signature))


def test_states_of_fused_operators_are_variables_in_float_and_quantized_files() -> None:
    for name in ("original", "compressed", "dynamic"):
        first, second = found(CASES / "lstm_state" / f"{name}.tflite")
        assert first.name != second.name
        assert {first.operator, second.operator} == {"UNIDIRECTIONAL_SEQUENCE_LSTM"}
    assert found(CASES / "gru_dynamic" / "compressed.tflite") == []


def test_a_resource_is_one_where_an_inference_writes_it(tmp_path: Path) -> None:
    """What CALL_ONCE writes at the beginning is the same; one that is only read is a constant."""
    pair = write_variable_pair(tmp_path / "pair", resource=True)
    assert found(pair / "compressed.tflite") == [Variable("sum", "ASSIGN_VARIABLE", 4)]
    graph = GraphWriter()
    handle, read = graph.tensor("handle", (), "RESOURCE"), graph.tensor("y", (1, 3), "FLOAT32")
    graph.operator("VAR_HANDLE", [], [handle], schema.VarHandleOptionsT())
    graph.operator("READ_VARIABLE", [handle], [read], schema.ReadVariableOptionsT())
    assert found(graph.content([], [read])) == []


def test_what_a_branch_writes_is_found_under_the_name_of_the_resource() -> None:
    graph = GraphWriter()
    condition, handle = graph.tensor("if", (), "BOOL"), graph.tensor("handle", (), "RESOURCE")
    x, y = (graph.tensor(name, (3,), "FLOAT32") for name in "xy")
    graph.operator("VAR_HANDLE", [], [handle], schema.VarHandleOptionsT(sharedName="kept"))
    graph.operator("IF", [condition, handle, x], [y], schema.IfOptionsT(1, 2))
    for writes in (True, False):
        graph.second()
        inner, given = graph.tensor("inner", (), "RESOURCE"), graph.tensor("v", (3,), "FLOAT32")
        if writes:
            options = schema.AssignVariableOptionsT()
            graph.operator("ASSIGN_VARIABLE", [inner, given], [], options)
        graph.first([inner, given], [given])
    assert found(graph.content([condition, x], [y])) == [Variable("kept", "ASSIGN_VARIABLE", 0)]


def test_a_signature_has_the_variables_of_its_own_graph() -> None:
    graph = GraphWriter()
    x, y = (graph.tensor(name, (1, 2), "FLOAT32") for name in "xy")
    graph.operator("NEG", [x], [y], schema.NegOptionsT())
    graph.signature("plain", 0, {"v": x}, {"w": y})
    graph.second()
    given, made = graph.tensor("given", (1, 1, 2), "FLOAT32"), graph.tensor("m", (1, 2), "FLOAT32")
    w, bias = (graph.constant("", np.ones(size, np.float32)) for size in ((2, 2), (2,)))
    state = graph.tensor("", (1, 2), "FLOAT32")
    graph.graph.tensors[state].isVariable = True
    graph.operator("RNN", [given, w, w, bias, state], [made], schema.RNNOptionsT())
    graph.signature("recurrent", 1, {"v": given}, {"w": made})
    graph.first([given], [made])
    content = graph.content([x], [y])
    assert found(content) == found(content, "plain") == []
    assert found(content, "recurrent") == [Variable("tensor 4", "RNN", 0)]
