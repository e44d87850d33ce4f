"""Weighted sums: models say their configurations, and the runtime's kernels agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.conform.graphs.operator_graph import OperatorGraph
from edgeflare.conform.operators.pools.pools import POOLS
from edgeflare.conform.operators.weighted_sums.weighted_sum_operators import WEIGHTED_SUMS
from edgeflare.conform.specification.operator_specification import Operand, OperatorSpecification
from edgeflare.conform.specification.settings import Configuration, dimensions
from kernel_rows import kernel_answers

OPERATORS = (*WEIGHTED_SUMS, *POOLS)
CELLS = [(one, type_) for one in OPERATORS for type_ in one.types]
SEEDS = st.integers(0, 2**32 - 1)
cells = st.sampled_from(CELLS)


@given(cells, SEEDS)
def test_a_model_is_read_as_what_it_was_built_from(
    cell: tuple[OperatorSpecification, str], seed: int
) -> None:
    operator, type_ = cell
    rng = np.random.default_rng(seed)
    drawn = operator.draw(type_, rng)
    if operator.invalid(type_, drawn) is not None:
        return
    reading = operator.read(operator.build(type_, drawn, rng))
    assert (reading.type, dict(reading.configuration)) == (type_, dict(drawn))


@given(cells, SEEDS)
def test_an_operator_reads_the_input_of_another_model(
    cell: tuple[OperatorSpecification, str], seed: int
) -> None:
    operator, type_ = cell
    rng = np.random.default_rng(seed)
    one, other = (operator.draw(type_, rng) for _ in range(2))
    graph = operator.build(type_, other, rng)
    wanted = graph.values[graph.inputs[0]]
    fed = operator.with_input(type_, one, wanted)
    assert fed is not None
    if operator.invalid(type_, fed) is None:
        made = operator.build(type_, fed, rng)
        found = made.values[made.inputs[0]]
        assert (found.shape, found.quantization) == (wanted.shape, wanted.quantization)


def reads_scales_of_others(
    operator: OperatorSpecification, type_: str, configuration: Configuration
) -> bool:
    """Tell of the reference's fault in batches of two dimensions, where XNNPACK is right."""
    if (operator.operator, type_) != ("BATCH_MATMUL", "dynamic"):
        return False
    return any(len(dimensions(configuration, one)) > 1 for one in ("batch", "right_batch"))


def models(operator: OperatorSpecification, rng: np.random.Generator) -> list[OperatorGraph]:
    found = []
    for type_ in operator.types:
        drawn = [operator.draw(type_, rng) for _ in range(30)]
        valid = [one for one in drawn if operator.invalid(type_, one) is None]
        assert len(valid) >= 27
        valid = [one for one in valid if not reads_scales_of_others(operator, type_, one)]
        found += [operator.build(type_, one, rng) for one in valid]
    return found


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda one: one.operator)
def test_kernels_answer_within_a_step_or_the_slack(
    operator: OperatorSpecification, tmp_path: Path
) -> None:
    rng = np.random.default_rng(5)
    graphs = models(operator, rng)
    operands = [operator.operands(one, "uniform", rng) for one in graphs]
    answers = kernel_answers(graphs, operands, tmp_path, "BUILTIN_REF")
    for graph, raw, (answer,) in zip(graphs, operands, answers, strict=True):
        node, given_ = graph.nodes[0], dict(zip(graph.inputs, raw, strict=True))
        values = [value if value.values is None else value.values for value in graph.values]
        read = [
            None if at < 0 else Operand(graph.values[at], np.asarray(given_.get(at, values[at])))
            for at in node.inputs
        ]
        (result,) = graph.results(node)
        (exact,) = operator.exact(node.options, read, [result])
        assert answer.shape == exact.values.shape
        if exact.kind == "bits":
            assert np.array_equal(answer, exact.values)
            continue
        right, step = exact.values, np.float64(0)
        if result.quantization is not None:
            known, quantization = np.iinfo(result.dtype), result.quantization
            step = np.float64(1.3 * quantization.scales[0])
            ends = quantization.real(np.array([known.min, known.max]))
            right = np.clip(right, *ends)
        off = np.abs(result.real(answer) - right)
        assert np.all(off <= step + exact.slack + np.abs(right) * 2**-23)
