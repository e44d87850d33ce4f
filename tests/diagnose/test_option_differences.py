"""Options of a layer that are not the original's, and those that two converters write unlike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from edgeflare.diagnose.option_differences import option_differences
from edgeflare.models.tflite_graph import Graph
from graph_writer import GraphWriter


def convolution(
    padding: str = "SAME",
    activation: str = "NONE",
    behind: str = "",
    *,
    stride: int = 1,
    dilation: int = 1,
    kernel: int = 1,
    made: int = 8,
) -> Graph:
    """Return a convolution of 8 x 8 pixels, and an operator behind it where one is named."""
    graph = GraphWriter()
    x = graph.tensor("x", (1, 8, 8, 3), "FLOAT32")
    weights = graph.constant("weights", np.ones((4, kernel, kernel, 3), np.float32))
    bias = graph.constant("bias", np.ones(4, np.float32))
    options = schema.Conv2DOptionsT()
    options.padding = getattr(schema.Padding, padding)
    options.strideW = options.strideH = stride
    options.dilationWFactor = options.dilationHFactor = dilation
    options.fusedActivationFunction = getattr(schema.ActivationFunctionType, activation)
    end = graph.tensor("y", (1, made, made, 4), "FLOAT32")
    graph.operator("CONV_2D", [x, weights, bias], [end], options)
    if behind:
        last = graph.tensor("last", (1, made, made, 4), "FLOAT32")
        graph.operator(behind, [end], [last])
        end = last
    return Graph(graph.content([x], [end]))


def pooled(stride: int, operator: str = "MAX_POOL_2D") -> Graph:
    """Return a maximum over all 8 x 8 pixels, or another value of them."""
    graph = GraphWriter()
    x, y = graph.tensor("x", (1, 8, 8, 3), "FLOAT32"), graph.tensor("y", (1, 1, 1, 3), "FLOAT32")
    options: Any = schema.Pool2DOptionsT()
    options.padding = schema.Padding.VALID
    options.strideW = options.strideH = stride
    options.filterWidth = options.filterHeight = 8
    graph.operator(operator, [x], [y], options)
    return Graph(graph.content([x], [y]))


def joined(axis: int) -> Graph:
    graph = GraphWriter()
    x, y = graph.tensor("x", (1, 4, 4), "FLOAT32"), graph.tensor("y", (1, 4, 8), "FLOAT32")
    options = schema.ConcatenationOptionsT()
    options.axis = axis
    graph.operator("CONCATENATION", [x, x], [y], options)
    return Graph(graph.content([x], [y]))


@pytest.mark.parametrize(
    ("compressed", "original"),
    [
        (convolution("VALID"), convolution("SAME")),
        (convolution(dilation=2), convolution()),
        (convolution(activation="RELU"), convolution(behind="RELU")),
        (convolution(behind="RELU"), convolution(activation="RELU")),
        (pooled(8), pooled(1)),
        (joined(-1), joined(2)),
    ],
)
def test_what_converters_write_differently_and_compute_alike_is_no_difference(
    compressed: Graph, original: Graph
) -> None:
    assert option_differences(compressed, 0, original, 0) == ()


@pytest.mark.parametrize(
    ("compressed", "original", "said"),
    [
        (convolution("VALID", kernel=3, made=6), convolution(kernel=3), "padding VALID"),
        (convolution(kernel=3, dilation=2), convolution(kernel=3), "dilation_h_factor 2"),
        (convolution(stride=2, made=4), convolution("SAME"), "stride_h 2"),
        (convolution(), convolution(activation="RELU"), "fused_activation_function NONE"),
        (convolution(activation="RELU"), convolution(), "fused_activation_function RELU"),
        (convolution(behind="RELU6"), convolution(activation="RELU"), "the original RELU"),
        (convolution(activation="RELU6", behind="RELU"), convolution(activation="RELU"), "RELU6"),
        (
            pooled(1, "AVERAGE_POOL_2D"),
            pooled(1),
            "operator AVERAGE_POOL_2D, the original MAX_POOL",
        ),
        (joined(1), joined(-1), "axis 1, the original -1"),
    ],
)
def test_what_computes_something_else_is_one(compressed: Graph, original: Graph, said: str) -> None:
    found = "; ".join(map(str, option_differences(compressed, 0, original, 0)))
    assert said in found
