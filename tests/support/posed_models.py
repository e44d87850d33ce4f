"""Small models of one operator with something to answer, for what runs them."""

from __future__ import annotations

import numpy as np

from edgeflare.conform.execution.kernel_arm import PosedModel
from edgeflare.conform.operator_graph import GraphValue, OperatorGraph, Option, Quantization
from edgeflare.conform.specification.activation_tensors import operand_values

ROWS = 3

NO_ACTIVATION: dict[str, Option] = {"fusedActivationFunction": "NONE"}


def posed(graph: OperatorGraph, seed: int = 0, rows: int = ROWS) -> PosedModel:
    """Return a model with uniform operands."""
    rng = np.random.default_rng(seed)
    given = [
        [operand_values(graph.values[at], "uniform", rng) for at in graph.inputs]
        for _ in range(rows)
    ]
    return PosedModel(graph, tuple(np.stack(one) for one in zip(*given, strict=True)), rows)


def unary(operator: str, shape: tuple[int, ...] = (2, 3), dtype: str = "float32") -> OperatorGraph:
    """Return a model of an operator without options that keeps shape and type."""
    return OperatorGraph.of_operator(
        operator, [GraphValue(dtype, shape)], [GraphValue(dtype, shape)]
    )


def addition(shape: tuple[int, ...] = (3, 5), version: int = 2) -> OperatorGraph:
    """Return an int8 ADD."""
    one, other, result = (
        GraphValue("int8", shape, Quantization((scale,), 3)) for scale in (0.05, 0.02, 0.1)
    )
    return OperatorGraph.of_operator("ADD", [one, other], [result], NO_ACTIVATION, version)


def convolution(rng: np.random.Generator, size: int = 6) -> OperatorGraph:
    """Return a float CONV_2D with constants that are drawn."""
    image, answer = GraphValue("float32", (1, size, 5, 3)), GraphValue("float32", (1, size, 5, 4))
    weights = GraphValue("float32", ()).constant(rng.normal(size=(4, 3, 3, 3)))
    bias = GraphValue("float32", ()).constant(rng.normal(size=4))
    options: dict[str, Option] = {
        "padding": "SAME",
        "strideH": 1,
        "strideW": 1,
        "dilationHFactor": 1,
        "dilationWFactor": 1,
        **NO_ACTIVATION,
    }
    return OperatorGraph.of_operator("CONV_2D", [image, weights, bias], [answer], options)


def of_constants() -> OperatorGraph:
    """Return a model that is given nothing."""
    constant = GraphValue("float32", ()).constant(np.array([[-1.5, 2.0, -0.25]]))
    return OperatorGraph.of_operator("ABS", [constant], [GraphValue("float32", (1, 3))])


def mixed_models(count: int, seed: int = 0) -> list[PosedModel]:
    """Return convolutions, additions, and others of one operand, by turns."""
    rng = np.random.default_rng(seed)
    graphs = [
        (
            convolution(rng, 5 + at % 4),
            addition((3, 4 + at % 5)),
            unary("ABS", (2, 1 + at % 7)),
            unary("NEG", (1 + at % 3, 4)),
        )[at % 4]
        for at in range(count)
    ]
    return [posed(graph, seed + at) for at, graph in enumerate(graphs)]
