"""Exact answers of elementwise operators are those of the runtime, but where it is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgeflare.conform.graphs.operator_graph import GraphValue, OperatorGraph, Values
from edgeflare.conform.operators.elementwise.elementwise_operators import ELEMENTWISE_OPERATORS
from edgeflare.conform.operators.known_operators import known_operators
from edgeflare.conform.specification.exact_answer import ExactAnswer
from edgeflare.conform.specification.operand_values import OperandStyle
from edgeflare.conform.specification.operator_specification import OperatorSpecification
from edgeflare.conform.specification.settings import Configuration
from edgeflare.conform.verdict.exact_rows import one_exact
from edgeflare.conform.verdict.exceptions import allowance
from edgeflare.conform.verdict.right_values import RightValues
from kernel_rows import kernel_answers

MODELS = 4
"""Of each cell."""

WRONG = {
    *((one, type_) for one in ("ADD", "MUL") for type_ in ("int8", "uint8")),
    *(("DIV", type_) for type_ in ("int8", "uint8", "int16x8")),
    *((one, "int16x8") for one in ("EXP", "LOG", "LOGISTIC", "MUL", "RELU6", "RSQRT", "TANH")),
    *((one, "int16x8") for one in ("GELU", "SQRT")),
    ("HARD_SWISH", "int8"),
    ("HARD_SWISH", "uint8"),
    ("SQUARED_DIFFERENCE", "int8"),
    *(
        (one, type_)
        for one in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
        for type_ in ("int8", "uint8")
    ),
}
"""Cells in which built-ins overflow, interpolate or rescale coarsely for some scales."""

CELLS = [
    (one, type_)
    for one in ELEMENTWISE_OPERATORS
    for type_ in one.types
    if (one.operator, type_) not in WRONG
]


def offence(
    operator: OperatorSpecification,
    type_: str,
    result: GraphValue,
    exact: ExactAnswer,
    answer: Values,
) -> float:
    """Return the largest error by what is allowed."""
    right = RightValues(result, exact, allowance(operator.operator, type_))
    return float(right.offences(right.errors(answer)).max(initial=0))


def drawn(operator: OperatorSpecification, type_: str) -> list[OperatorGraph]:
    """Return models that have values."""
    rng, found = np.random.default_rng(3), list[OperatorGraph]()
    while len(found) < MODELS:
        configuration = operator.draw(type_, rng)
        if operator.invalid(type_, configuration) is None:
            graph = operator.build(type_, configuration, rng)
            if graph.results(graph.nodes[0])[0].size:
                found.append(graph)
    return found


@pytest.mark.parametrize("style", ["uniform", "extreme"])
@pytest.mark.parametrize("kernels", ["BUILTIN", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"])
def test_kernels_answer_what_is_exact(tmp_path: Path, style: OperandStyle, kernels: str) -> None:
    asked = [(*cell, graph) for cell in CELLS for graph in drawn(*cell)]
    rng = np.random.default_rng(5)
    given = [operator.operands(graph, style, rng) for operator, _, graph in asked]
    graphs = [graph for _, _, graph in asked]
    answers = kernel_answers(graphs, given, tmp_path, kernels)
    wrong = []
    for (operator, type_, graph), operands, (answer,) in zip(asked, given, answers, strict=True):
        (result,) = graph.results(graph.nodes[0])
        (exact,) = one_exact(operator, graph, operands)
        assert exact.values.shape == result.shape
        if (worst := offence(operator, type_, result, exact, answer)) > 1:
            wrong.append((operator.operator, type_, operator.read(graph).configuration, worst))
    assert wrong == []


def worst_offence(
    operator: str, type_: str, configuration: Configuration, folder: Path, kernels: str
) -> float:
    """Return how wrong the runtime is on one model."""
    known, rng = known_operators()[operator], np.random.default_rng(1)
    assert known.invalid(type_, configuration) is None
    graph = known.build(type_, configuration, rng)
    given = known.operands(graph, "uniform", rng)
    ((answer,),) = kernel_answers([graph], [given], folder, kernels)
    (result,) = graph.results(graph.nodes[0])
    (exact,) = one_exact(known, graph, given)
    return offence(known, type_, result, exact, answer)


def binary(first: float, second: float, output: float) -> Configuration:
    """Return a uint8 configuration of several scales."""
    scales: Configuration = {"first_scale": first, "second_scale": second, "output_scale": output}
    zero_points = dict.fromkeys(("first_zero_point", "second_zero_point", "output_zero_point"), 0)
    modes: Configuration = {"constant": "none", "activation": "NONE"}
    kept: Configuration = {"shape": (300,), "first_broadcast": "none", "second_broadcast": "none"}
    return {**kept, **modes, **scales, **zero_points}


@pytest.mark.parametrize("kernels", ["BUILTIN_WITHOUT_DEFAULT_DELEGATES", "BUILTIN_REF"])
def test_a_sum_that_wraps_around_is_seen(tmp_path: Path, kernels: str) -> None:
    """A fault of the runtime's optimized kernels, which the reference does not have."""
    worst = worst_offence("ADD", "uint8", binary(0.5, 0.5, 2**-10), tmp_path, kernels)
    assert (worst > 100) == (kernels != "BUILTIN_REF")


@pytest.mark.parametrize("kernels", ["BUILTIN_WITHOUT_DEFAULT_DELEGATES", "BUILTIN_REF"])
def test_a_product_with_a_scalar_that_wraps_around_is_seen(tmp_path: Path, kernels: str) -> None:
    configuration = {**binary(0.05, 0.05, 2**-10), "second_broadcast": "scalar"}
    worst = worst_offence("MUL", "uint8", configuration, tmp_path, kernels)
    assert (worst > 100) == (kernels != "BUILTIN_REF")
