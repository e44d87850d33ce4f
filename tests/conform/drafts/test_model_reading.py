"""The operators of a file that a user names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given, settings
from hypothesis import strategies as st

from drafting import relu_chain
from edgeflare.conform.drafts.cells import chosen_cells, drawn_configuration
from edgeflare.conform.drafts.draft import FRESH, DraftNode, drafted
from edgeflare.conform.drafts.model_reading import ModelReading, read_operators
from edgeflare.conform.drafts.node_graphs import NodeGraphs
from edgeflare.conform.graphs.graph_file import graph_file
from edgeflare.conform.graphs.operator_graph import OperatorGraph, side_by_side
from edgeflare.errors import UserError
from edgeflare.models.tflite_file import read_model
from edgeflare.models.tflite_writer import written
from graph_writer import GraphWriter
from outside_buffers import with_buffers_outside

EXAMPLES = Path(__file__).parents[3] / "examples"


@settings(max_examples=30)
@given(cell=st.sampled_from(chosen_cells()), seed=st.integers(0, 2**32 - 1))
def test_an_operator_is_read_from_a_file_as_it_was_built(cell: tuple[str, str], seed: int) -> None:
    graph, node = _drawn(cell, seed)
    reading = read_operators(graph_file(graph))
    (read,) = reading.known
    assert (read.cell, dict(read.reading.configuration)) == (cell, dict(node.configuration))
    for made, found in zip(graph.values, read.graph.values, strict=True):
        assert (made.dtype, made.shape, made.quantization) == (
            found.dtype,
            found.shape,
            found.quantization,
        )
        assert made.values is None or np.array_equal(made.values, found.values)  # type: ignore[arg-type]


def test_who_feeds_whom_is_read() -> None:
    draft = relu_chain([(2, 3), (2, 3), (4,), (4,)])
    reading = read_operators(graph_file(drafted(draft).graph))
    assert [node.sources for node in reading.draft.nodes] == [(FRESH,), (0,), (FRESH,), (2,)]
    assert [node.given for node in reading.draft.nodes] == [0, 1, 2, 3]
    whole = drafted(reading.draft, reading.given).graph
    assert graph_file(whole) == graph_file(drafted(draft).graph)


def test_equal_operators_are_one() -> None:
    reading = read_operators(graph_file(drafted(relu_chain([(2, 3), (4,), (2, 3)])).graph))
    assert [one.place for one in reading.distinct] == [0, 1]
    assert [reading.distinct_at(places) for places in ([], [2], [0, 2], [0, 1, 2])] == [0, 1, 1, 2]
    graph, _ = _drawn(("ADD", "float32"), 0)
    other, _ = _drawn(("ADD", "float32"), 1)
    assert len(read_operators(graph_file(side_by_side([graph, other, graph]))).distinct) == 2


def test_the_examples_are_read() -> None:
    for name in ("face_detection", "fashion_lenet4", "spoken_words"):
        for file in sorted((EXAMPLES / name).glob("*.tflite")):
            reading = _read(file)
            drafted(reading.draft, reading.given)
            assert all(one.reason for one in reading.unknown)


def test_halves_are_constants_of_what_reads_them() -> None:
    weights = np.array([0.5, 2.0, -1.0], np.float16)
    reading = read_operators(_with_halves(weights))
    assert [one.operator for one in reading.known] == ["ADD"]
    constants = [one.values for one in reading.known[0].graph.values if one.values is not None]
    assert np.array_equal(constants[0], weights.astype(np.float32))


def test_a_shape_that_a_model_computes_is_known() -> None:
    reading = _read(EXAMPLES / "fashion_lenet4" / "compressed.tflite")
    reshaping = next(one for one in reading.known if one.operator == "RESHAPE")
    assert len(reshaping.graph.inputs) == 1


def test_constants_behind_the_flatbuffer_are_read() -> None:
    content = _with_constant()
    (moved,), (plain,) = (
        read_operators(one).known for one in (with_buffers_outside(content), content)
    )
    assert graph_file(moved.graph) == graph_file(plain.graph)


def test_unknown_operators_are_listed_with_the_reason() -> None:
    graph = drafted(relu_chain([(2, 3), (2, 3)])).graph
    model = read_model(graph_file(graph))
    other = schema.OperatorCodeT()
    other.builtinCode = other.deprecatedBuiltinCode = schema.BuiltinOperator.LSH_PROJECTION
    other.version = 1
    model.operatorCodes.append(other)
    model.subgraphs[0].operators[0].opcodeIndex = 1
    reading = read_operators(written(model))
    assert [(one.place, one.operator) for one in reading.unknown] == [(0, "LSH_PROJECTION")]
    assert "not known" in reading.unknown[0].reason
    # What it feeds is given instead.
    assert reading.draft.nodes[0].sources == (FRESH,)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "cannot be read"),
        (b"PK" * 400, "cannot be read"),
        (graph_file(drafted(relu_chain([(2, 3)])).graph)[:150], "cannot be read"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(content: bytes, words: str) -> None:
    with pytest.raises(UserError, match=words) as raised:
        read_operators(content, "model.tflite")
    assert str(raised.value).startswith("model.tflite: ")
    assert "\n" not in str(raised.value)


def test_a_file_without_its_weights_is_refused() -> None:
    content = _with_constant()
    model = read_model(content)
    for tensor in model.subgraphs[0].tensors:
        if tensor.buffer:
            tensor.buffer = 0
    with pytest.raises(UserError, match="weights of 1 tensor"):
        read_operators(written(model))
    cut = with_buffers_outside(content)
    with pytest.raises(UserError, match="cut off"):
        read_operators(cut[:-8])


def test_a_file_of_unknown_operators_is_refused() -> None:
    model = read_model(graph_file(drafted(relu_chain([(2, 3)])).graph))
    code = schema.BuiltinOperator.LSH_PROJECTION
    model.operatorCodes[0].builtinCode = model.operatorCodes[0].deprecatedBuiltinCode = code
    with pytest.raises(UserError, match=r"none of its operators is known \(it has LSH_PROJECTION"):
        read_operators(written(model))


def _read(file: Path) -> ModelReading:
    return read_operators(file.read_bytes(), str(file))


def _drawn(cell: tuple[str, str], seed: int) -> tuple[OperatorGraph, DraftNode]:
    rng = np.random.default_rng(seed)
    configuration = drawn_configuration(cell, rng)
    assert configuration is not None
    node = DraftNode(*cell, configuration, seed, ())
    return NodeGraphs().graph(node), node


def _with_constant() -> bytes:
    """Return a file of one ADD of a constant, which takes 48 bytes."""
    graph = GraphWriter()
    x = graph.tensor("x", (12,), "FLOAT32")
    constant = graph.tensor("w", (12,), "FLOAT32", None, np.arange(12, dtype=np.float32))
    y = graph.tensor("y", (12,), "FLOAT32")
    graph.operator("ADD", [x, constant], [y], schema.AddOptionsT(), 1)
    return _content(graph, x, y)


def _with_halves(weights: np.ndarray[tuple[int], np.dtype[np.float16]]) -> bytes:
    graph = GraphWriter()
    x = graph.tensor("x", weights.shape, "FLOAT32")
    halves = graph.tensor("w16", weights.shape, "FLOAT16", None, weights)
    constant = graph.tensor("w", weights.shape, "FLOAT32")
    y = graph.tensor("y", weights.shape, "FLOAT32")
    graph.operator("DEQUANTIZE", [halves], [constant], schema.DequantizeOptionsT(), 3)
    graph.operator("ADD", [x, constant], [y], schema.AddOptionsT(), 1)
    return _content(graph, x, y)


def _content(graph: GraphWriter, x: int, y: int) -> bytes:
    graph.graph.inputs, graph.graph.outputs = [x], [y]
    return written(graph.model)
