"""Tests of edgeflare.repair.precision.localization: by hand, and of faults planted in a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.diagnose.layer_difference import LayerName
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.precision.block_errors import OperatorErrors, operator_errors
from edgeflare.repair.precision.blocks import Block, blocks_of, operators_of
from edgeflare.repair.precision.localization import (
    blamed,
    promotion_scores,
    residual_scores,
    spectrum_scores,
    tarantula,
)
from edgeflare.repair.precision.margin_comparison import MarginComparison, MarginDifference
from edgeflare.repair.precision.precision_candidates import localized_scores
from edgeflare.repair.precision.promoted_models import PromotedModel
from fault_injection import Planted, broken
from fitted_networks import judged

pytest.importorskip("litert_quantizer")


@cache
def blocks() -> tuple[Block, ...]:
    return blocks_of(judged("example").network)


@cache
def near_network() -> QuantizedNetwork:
    """The example with images halfway between two, which are less decided."""
    known = judged("example")
    return replace(known.network, rows=known.rows, original_rows=known.original_rows)


def with_fault(block: int, fault: str, amount: float) -> QuantizedNetwork:
    network = near_network()
    graph = network.graph
    output = graph.operators[blocks()[block].operators[0]].outputs[0]
    planted = Planted(fault, graph.tensors[output].name, amount)
    return network.with_content(broken(network.content, planted))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("block", "fault", "amount"),
    [(0, "scale off", 2.0), (1, "some weights", 0.3), (2, "some weights", 0.3)],
)
def test_each_way_blames_the_block_with_the_fault(block: int, fault: str, amount: float) -> None:
    network = with_fault(block, fault, amount)
    comparison = MarginComparison(network)
    assert comparison.deviating(network.content).sum() >= 10
    scores = localized_scores(network, blocks(), comparison, lambda _done, _total: None)
    for way, of in scores.items():
        assert blamed(blocks(), of) == blocks()[block], (way, of)


def test_an_operator_adds_no_error_of_those_before_it() -> None:
    operators = operators_of(blocks())
    few = replace(
        near_network(), rows=near_network().rows[:8], original_rows=near_network().original_rows[:8]
    )
    healthy = operator_errors(few, operators)
    wrong = with_fault(0, "some weights", 0.5)
    faulty = operator_errors(few.with_content(wrong.content), operators)
    first = blocks()[0].operators[0]
    assert faulty[first].relative.mean() > 5 * healthy[first].relative.mean()
    for one in set(healthy) - {first}:
        np.testing.assert_array_equal(faulty[one].squared, healthy[one].squared)


def made_up(values: list[list[float]], errors: list[float]) -> OperatorErrors:
    activation = np.array(values)
    squared = np.broadcast_to(np.array(errors) ** 2, activation.shape)
    return OperatorErrors(squared, 1.0, activation)


FIRST, SECOND = (Block(LayerName(at, "CONV_2D", ""), (at,)) for at in (0, 1))


def test_tarantula_is_greatest_for_channels_active_on_failures_alone() -> None:
    failing = np.array([True, True, False, False])
    activation = np.array([[9.0, 0, 5], [8, 0, 0], [1, 7, 5], [0, 8, 0]])
    np.testing.assert_allclose(tarantula(activation, failing), [1.0, 0.0, 0.5])


def test_spectrum_blames_channels_with_errors_that_are_active_on_failures() -> None:
    failing = np.array([True, True, False, False])
    on_failing, on_passing = [[9.0] * 2, [8.0] * 2, [0.0] * 2, [1.0] * 2], [[0.0] * 2] * 4
    errors = {0: made_up(on_failing, [0.5, 0.5]), 1: made_up(on_passing, [0.1, 0.1])}
    scores = spectrum_scores((FIRST, SECOND), errors, failing)
    assert 1 >= scores[FIRST.name] > scores[SECOND.name] >= 0
    assert blamed((FIRST, SECOND), scores) == FIRST
    nothing = spectrum_scores((FIRST, SECOND), errors, np.zeros(4, bool))
    assert blamed((FIRST, SECOND), nothing) is None


@given(gains=st.lists(st.floats(-0.5, 0.9), min_size=2, max_size=2), before=st.floats(0.1, 1))
def test_promotion_blames_the_block_that_gains_most(gains: list[float], before: float) -> None:
    errors = {FIRST: before * (1 - gains[0]), SECOND: before * (1 - gains[1])}

    def measure(of: Sequence[Block]) -> PromotedModel:
        error = errors[of[0]] if of else before
        return PromotedModel(tuple(of), MarginDifference(error, 0), 0)

    scores = promotion_scores((FIRST, SECOND), measure)
    np.testing.assert_allclose([scores[FIRST.name], scores[SECOND.name]], gains, atol=1e-9)
    found = blamed((FIRST, SECOND), scores)
    assert (found is None) is (max(scores.values()) <= 0)


def test_residual_adds_up_the_operators_of_a_block() -> None:
    errors = {at: made_up([[1.0]], [error]) for at, error in enumerate((0.3, 0.4, 0.1))}
    both = Block(LayerName(0, "CONV_2D", ""), (0, 1))
    last = Block(LayerName(2, "CONV_2D", ""), (2,))
    scores = residual_scores((both, last), errors)
    np.testing.assert_allclose([scores[both.name], scores[last.name]], [0.5, 0.1])
