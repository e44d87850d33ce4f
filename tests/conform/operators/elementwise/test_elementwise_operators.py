"""Laws of all elementwise operators: models say their configurations, and can be chained."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.conform.graphs.operator_graph import OperatorGraph
from edgeflare.conform.operators.elementwise.elementwise_operators import ELEMENTWISE_OPERATORS
from edgeflare.conform.specification.operator_specification import OperatorSpecification

CELLS = [(one, type_) for one in ELEMENTWISE_OPERATORS for type_ in one.types]
SEEDS = st.integers(0, 2**32 - 1)

cells = st.sampled_from(CELLS)


def drawn(operator: OperatorSpecification, type_: str, seed: int) -> OperatorGraph | None:
    rng = np.random.default_rng(seed)
    configuration = operator.draw(type_, rng)
    if operator.invalid(type_, configuration) is not None:
        return None
    return operator.build(type_, configuration, rng)


@given(cells, SEEDS)
def test_a_model_is_read_as_what_it_was_built_from(
    cell: tuple[OperatorSpecification, str], seed: int
) -> None:
    operator, type_ = cell
    rng = np.random.default_rng(seed)
    configuration = operator.draw(type_, rng)
    if operator.invalid(type_, configuration) is None:
        reading = operator.read(operator.build(type_, configuration, rng))
        assert (reading.type, dict(reading.configuration)) == (type_, dict(configuration))


@pytest.mark.parametrize(
    ("operator", "type_"), CELLS, ids=lambda one: getattr(one, "operator", one)
)
def test_most_draws_are_valid(operator: OperatorSpecification, type_: str) -> None:
    models = [drawn(operator, type_, seed) for seed in range(60)]
    assert sum(one is not None for one in models) >= 0.9 * len(models)


@given(cells, cells, SEEDS)
def test_an_operator_takes_the_result_of_another(
    before: tuple[OperatorSpecification, str],
    behind: tuple[OperatorSpecification, str],
    seed: int,
) -> None:
    first = drawn(*before, seed)
    if first is None:
        return
    rng = np.random.default_rng(seed)
    (result,) = first.results(first.nodes[0])
    operator, type_ = behind
    adapted = operator.with_input(type_, operator.draw(type_, rng), result)
    if adapted is None or operator.invalid(type_, adapted) is not None:
        return
    graph = operator.build(type_, adapted, rng)
    read = graph.values[graph.inputs[0]]
    assert (read.dtype, read.shape, read.quantization) == (
        result.dtype,
        result.shape,
        result.quantization,
    )
