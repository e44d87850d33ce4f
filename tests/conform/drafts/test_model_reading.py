"""The operators of a file that a user names, and what each computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given, settings
from hypothesis import strategies as st

from drafting import fresh, relu_chain
from edgeflare.conform.drafts.cells import chosen_cells
from edgeflare.conform.drafts.draft import FRESH, DraftNode, NodeGraphs, drafted
from edgeflare.conform.drafts.file_arithmetic import operator_arithmetic
from edgeflare.conform.drafts.model_reading import read_operators
from edgeflare.conform.graph_file import graph_file, signatures_file
from edgeflare.conform.operator_graph import OperatorGraph, side_by_side
from edgeflare.errors import UserError
from edgeflare.models.tflite_file import read_model
from edgeflare.models.tflite_graph import Graph
from edgeflare.models.tflite_writer import written
from graph_writer import GraphWriter
from outside_buffers import with_buffers_outside
from public_cases import CASES

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


def test_the_graphs_of_all_signatures_are_read_and_named() -> None:
    first, second = (
        drafted(relu_chain(shapes)).graph for shapes in ([(2, 3), (4,)], [(4,), (5, 2), (3,)])
    )
    reading = read_operators(signatures_file([first, second]))
    assert [(graph.name, graph.places) for graph in reading.graphs] == [
        ("signature first", range(2)),
        ("signature second", range(2, 5)),
    ]
    assert [read.place for read in reading.known] == list(range(5))
    assert [node.given for node in reading.draft.nodes] == list(range(5))
    wholes = [graph.graph for graph in reading.graphs if graph.graph is not None]
    assert [[*map(len, (whole.inputs, whole.nodes))] for whole in wholes] == [[2, 2], [3, 3]]
    # The RELU of four values is in both.
    assert reading.names_at([1]) == ("signature first", "signature second")
    assert reading.names_at([3]) == ("signature second",)
    assert sorted(reading.arithmetic) == list(range(5))


def test_a_graph_that_a_loop_runs_is_read_behind_what_runs_it() -> None:
    reading = read_operators((CASES / "gru_dynamic" / "compressed.tflite").read_bytes())
    assert [graph.name.split("/")[-1] for graph in reading.graphs] == [
        *("graph 0 main", "while_cond", "while_body"),
    ]
    assert [skipped.operator for skipped in reading.unknown] == ["WHILE"]
    body = reading.graphs[2].places
    within = [read.operator for read in reading.known if read.place in body]
    assert {"FULLY_CONNECTED", "LOGISTIC", "TANH"} <= {*within}


def test_a_variable_is_known_where_it_is_assigned_before_it_is_read() -> None:
    graph, _ = _drawn(("READ_VARIABLE", "float32"), 3)
    twice = side_by_side([graph, graph])
    content = graph_file(twice)
    assert [one.operator for one in read_operators(content).known] == ["READ_VARIABLE"] * 2
    model = read_model(content)
    options = [one.builtinOptions for one in model.subgraphs[0].operators]
    # Side by side, no graph shares its variable with another one.
    names = [one.sharedName for one in options if hasattr(one, "sharedName")]
    assert len(set(names)) == len(names) == 2
    operators = model.subgraphs[0].operators
    operators[4], operators[5] = operators[5], operators[4]
    reading = read_operators(written(model))
    assert [one.operator for one in reading.known] == ["READ_VARIABLE"]
    assert {one.operator for one in reading.unknown} == {
        *("ASSIGN_VARIABLE", "READ_VARIABLE", "VAR_HANDLE")
    }


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
            reading = read_operators(file.read_bytes(), str(file))
            drafted(reading.draft, reading.given)
            assert all(one.reason for one in reading.unknown)


def test_halves_are_constants_of_what_reads_them() -> None:
    weights = np.array([0.5, 2.0, -1.0], np.float16)
    reading = read_operators(_with_halves(weights))
    assert [one.operator for one in reading.known] == ["ADD"]
    constants = [one.values for one in reading.known[0].graph.values if one.values is not None]
    assert np.array_equal(constants[0], weights.astype(np.float32))


def test_a_shape_that_a_model_computes_is_known() -> None:
    reading = read_operators((EXAMPLES / "fashion_lenet4" / "compressed.tflite").read_bytes())
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


def test_a_file_that_is_damaged_or_of_nothing_known_is_refused_in_one_line() -> None:
    whole = graph_file(drafted(relu_chain([(2, 3)])).graph)
    with pytest.raises(UserError, match=r"^model\.tflite: .*cannot be read") as raised:
        read_operators(whole[:150], "model.tflite")
    assert "\n" not in str(raised.value)
    model = read_model(whole)
    code = schema.BuiltinOperator.LSH_PROJECTION
    model.operatorCodes[0].builtinCode = model.operatorCodes[0].deprecatedBuiltinCode = code
    with pytest.raises(UserError, match=r"none of its operators is known \(it has LSH_PROJECTION"):
        read_operators(written(model))
    content = _with_constant()
    model = read_model(content)
    # Without weights.
    for tensor in model.subgraphs[0].tensors:
        if tensor.buffer:
            tensor.buffer = 0
    with pytest.raises(UserError, match="weights of 1 tensor"):
        read_operators(written(model))
    cut = with_buffers_outside(content)
    with pytest.raises(UserError, match="cut off"):
        read_operators(cut[:-8])


def _drawn(cell: tuple[str, str], seed: int) -> tuple[OperatorGraph, DraftNode]:
    node = DraftNode(*cell, fresh(cell, np.random.default_rng(seed)), seed, ())
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


Shape = tuple[int, ...]


COUNTED: list[tuple[str, list[Shape], Shape, object, int]] = [
    ("CONV_2D", [(1, 8, 8, 3), (16, 3, 3, 3)], (1, 4, 4, 16), None, 4 * 4 * 16 * 27),
    ("CONV_2D", [(1, 8, 8, 6), (16, 3, 3, 2)], (1, 4, 4, 16), None, 4 * 4 * 16 * 18),
    ("DEPTHWISE_CONV_2D", [(1, 8, 8, 6), (1, 3, 5, 6)], (1, 4, 4, 6), None, 4 * 4 * 6 * 15),
    ("TRANSPOSE_CONV", [(4,), (8, 3, 3, 2), (1, 4, 4, 2)], (1, 8, 8, 8), None, 4 * 4 * 2 * 72),
    ("CONV_3D", [(1, 4, 4, 4, 2), (2, 2, 2, 2, 5)], (1, 3, 3, 3, 5), None, 27 * 5 * 16),
    ("FULLY_CONNECTED", [(2, 7, 64), (10, 64), (10,)], (2, 7, 10), None, 14 * 10 * 64),
    ("BATCH_MATMUL", [(2, 3, 4), (2, 4, 5)], (2, 3, 5), schema.BatchMatMulOptionsT(), 30 * 4),
    (
        "BATCH_MATMUL",
        [(2, 4, 3), (2, 4, 5)],
        (2, 3, 5),
        schema.BatchMatMulOptionsT(adjX=True),
        30 * 4,
    ),
    ("MEAN", [(1, 8, 8, 3), (2,)], (1, 3), None, 192),
    ("ADD", [(1, 8, 8, 3), (3,)], (1, 8, 8, 3), schema.AddOptionsT(), 192),
    ("SPLIT", [(), (1, 8)], (1, 4), None, 0),
    ("RESHAPE", [(1, 8)], (8,), None, 0),
]


@pytest.mark.parametrize(("name", "read", "made", "options", "count"), COUNTED)
def test_an_operator_is_counted_by_its_products_or_the_values_it_computes(
    name: str, read: list[Shape], made: Shape, options: object, count: int, tmp_path: Path
) -> None:
    writer = GraphWriter()
    inputs = [writer.tensor(f"in {at}", shape, "FLOAT32") for at, shape in enumerate(read)]
    output = writer.tensor("out", made, "FLOAT32")
    writer.operator(name, inputs, [output], options)
    content = writer.save(tmp_path / "model.tflite", inputs, [output]).read_bytes()
    assert operator_arithmetic(Graph(content)) == (count,)


def test_recurrent_operators_are_counted_at_each_step_and_loops_where_what_they_run_is() -> None:
    lstm = _counted("lstm_state")
    assert lstm["UNIDIRECTIONAL_SEQUENCE_LSTM"] == 20 * (4 * 24 * 6 + 4 * 24 * 24)
    assert _counted("gru_dynamic")["WHILE"] == 0
    assert _counted("gru_dynamic", 2)["FULLY_CONNECTED"] >= 16 * 3 * 16
    assert _counted("composite_op")["STABLEHLO_COMPOSITE"] == 0
    assert _counted("composite_op", 1)["SOFTMAX"] == 10


def test_preparing_a_constant_is_no_arithmetic(tmp_path: Path) -> None:
    writer = GraphWriter()
    stored = writer.tensor("stored", (3,), "INT8", (0.5, 0), np.ones(3, np.int8))
    x, weights, y = (writer.tensor(name, (1, 3), "FLOAT32") for name in ("x", "weights", "y"))
    writer.operator("DEQUANTIZE", [stored], [weights])
    writer.operator("ADD", [x, weights], [y], schema.AddOptionsT())
    content = writer.save(tmp_path / "model.tflite", [x], [y]).read_bytes()
    assert operator_arithmetic(Graph(content)) == (0, 3)


def _counted(case: str, number: int = 0) -> dict[str, int]:
    graph = Graph((CASES / case / "compressed.tflite").read_bytes(), number=number)
    counts = operator_arithmetic(graph)
    return {one.name: count for one, count in zip(graph.operators, counts, strict=True)}
