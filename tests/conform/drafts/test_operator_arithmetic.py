"""The multiply-accumulates of operators, each counted by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from edgeflare.conform.drafts.operator_arithmetic import operator_arithmetic
from edgeflare.models.tflite_graph import Graph
from graph_writer import GraphWriter
from public_cases import CASES

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


def test_recurrent_operators_are_counted_at_each_step_and_loops_by_what_they_run_once() -> None:
    lstm = _counted("lstm_state")
    assert lstm["UNIDIRECTIONAL_SEQUENCE_LSTM"] == 20 * (4 * 24 * 6 + 4 * 24 * 24)
    assert _counted("gru_dynamic")["WHILE"] > 16 * 3 * 16
    assert _counted("composite_op")["STABLEHLO_COMPOSITE"] == 10


def test_preparing_a_constant_is_no_arithmetic(tmp_path: Path) -> None:
    writer = GraphWriter()
    stored = writer.tensor("stored", (3,), "INT8", (0.5, 0), np.ones(3, np.int8))
    x, weights, y = (writer.tensor(name, (1, 3), "FLOAT32") for name in ("x", "weights", "y"))
    writer.operator("DEQUANTIZE", [stored], [weights])
    writer.operator("ADD", [x, weights], [y], schema.AddOptionsT())
    content = writer.save(tmp_path / "model.tflite", [x], [y]).read_bytes()
    assert operator_arithmetic(Graph(content)) == (0, 3)


def _counted(case: str) -> dict[str, int]:
    graph = Graph((CASES / case / "compressed.tflite").read_bytes())
    counts = operator_arithmetic(graph)
    return {one.name: count for one, count in zip(graph.operators, counts, strict=True)}
