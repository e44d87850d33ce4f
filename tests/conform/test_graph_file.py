"""Operator graphs as files: what the runtime and our own reader find in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgeflare.conform.graph_file import graph_file
from edgeflare.conform.operator_graph import (
    ABSENT,
    GraphValue,
    OperatorGraph,
    Option,
    Quantization,
    side_by_side,
)
from edgeflare.core.tensor import pack_rows, unpack_rows
from edgeflare.models.model_structure import options_class
from edgeflare.models.tflite import open_tflite
from edgeflare.models.tflite_graph import Graph

VECTOR = GraphValue("float32", (1, 4))


def relu() -> OperatorGraph:
    return OperatorGraph.of_operator("RELU", [VECTOR], [VECTOR])


def fully_connected() -> OperatorGraph:
    """No bias, and int8 weights with a scale for each output."""
    quantized = Quantization((0.5, 0.25), axis=0)
    weights = GraphValue("int8", (2, 4), quantized).constant(np.arange(8).reshape(2, 4))
    given = GraphValue("int8", (1, 4), Quantization((1.0,), 3))
    result = GraphValue("int8", (1, 2), Quantization((2.0,), -1))
    options: dict[str, Option] = {"fusedActivationFunction": "RELU6", "keepNumDims": True}
    return OperatorGraph.of_operator(
        "FULLY_CONNECTED", [given, weights, None], [result], options, version=5
    )


def test_a_file_says_what_the_graph_says() -> None:
    graph = Graph(graph_file(fully_connected()))
    (operator,) = graph.operators
    assert operator.name == "FULLY_CONNECTED"
    given, weights, result = (graph.tensors[at] for at in (0, 1, 2))
    assert (given.shape, given.scales, given.zero_points) == ((1, 4), (1.0,), (3,))
    assert (weights.scales, weights.axis, weights.constant) == ((0.5, 0.25), 0, True)
    assert (result.dtype, result.zero_points) == ("int8", (-1,))
    np.testing.assert_array_equal(graph.values(1), np.arange(8).reshape(2, 4))
    np.testing.assert_array_equal(
        Quantization((1.0, 10.0), axis=1).real(np.ones((2, 2), "i1")), [[1, 10], [1, 10]]
    )
    assert graph.options(0)["keepNumDims"]
    assert graph.options(0)["fusedActivationFunction"] == 3  # RELU6 in the schema
    assert graph.model.operatorCodes[0].version == 5


def test_what_is_side_by_side_answers_as_it_does_alone(tmp_path: Path) -> None:
    path = tmp_path / "two.tflite"
    path.write_bytes(graph_file(side_by_side([relu(), relu()])))
    model = open_tflite(path)
    try:
        one, other = np.array([[[-1, 2, -3, 4]]], "f4"), np.array([[[5, -6, 7, -8]]], "f4")
        rows = pack_rows(model.signature.inputs, [one, other])
        answers = unpack_rows(model.signature.outputs, model.submit(rows).result().outputs)
    finally:
        model.close()
    np.testing.assert_array_equal(answers[0], np.maximum(one, 0))
    np.testing.assert_array_equal(answers[1], np.maximum(other, 0))


def test_an_input_that_is_left_out_stays_so_beside_others() -> None:
    both = side_by_side([relu(), fully_connected()])
    assert both.nodes[1].inputs == (2, 3, ABSENT)
    assert both.inputs == (0, 2)
    assert both.outputs == (1, 4)


@pytest.mark.parametrize(
    ("operator", "options"),
    [
        ("CONV_2D", "Conv2DOptions"),
        ("REDUCE_MAX", "ReducerOptions"),
        ("L2_NORMALIZATION", "L2NormOptions"),
        ("RELU", None),
    ],
)
def test_each_operator_has_the_options_of_the_schema(operator: str, options: str | None) -> None:
    assert options_class(operator) == options


@pytest.mark.parametrize("operator", ["CONV_2D", "RELU"])
def test_an_option_that_the_schema_lacks_is_refused(operator: str) -> None:
    graph = OperatorGraph.of_operator(operator, [VECTOR], [VECTOR], {"colour": 1})
    with pytest.raises(ValueError, match=operator):
        graph_file(graph)
