"""The search for the blocks to compute in float."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.repair.candidate_details import Block
from edgeflare.repair.methods.precision import (
    LEAST_GAIN,
    improvements,
    path_points,
    promotion_scores,
    search_precision,
)
from edgeflare.repair.precision.blocks import blamed
from edgeflare.repair.precision.precision_promotion import MarginDifference, Measure, PromotedModel


def block(*operators: int) -> Block:
    return Block(f"CONV_2D (operator {operators[0]})", "", operators)


BLOCKS = [block(at) for at in range(5)]


@given(gains=st.lists(st.floats(-0.5, 0.9), min_size=2, max_size=2), before=st.floats(0.1, 1))
def test_promotion_blames_the_block_that_gains_most(gains: list[float], before: float) -> None:
    errors = {BLOCKS[0]: before * (1 - gains[0]), BLOCKS[1]: before * (1 - gains[1])}

    def measure(of: Sequence[Block]) -> PromotedModel:
        error = errors[of[0]] if of else before
        return PromotedModel(tuple(of), MarginDifference(error, 0), 0)

    scores = promotion_scores((BLOCKS[0], BLOCKS[1]), measure)
    np.testing.assert_allclose([scores[BLOCKS[0].name], scores[BLOCKS[1].name]], gains, atol=1e-9)
    found = blamed((BLOCKS[0], BLOCKS[1]), scores)
    assert (found is None) is (max(scores.values()) <= 0)


def measure_of(errors: Sequence[float | None]) -> Measure:
    """Give each set of blocks an error of its own; None is a set that cannot be made."""

    def measure(blocks: Sequence[Block]) -> PromotedModel | None:
        error = errors[sum(2 ** one.operators[0] for one in blocks)]
        return (
            None if error is None else PromotedModel(tuple(blocks), MarginDifference(error, 0), 0)
        )

    return measure


def harm_of(harms: Sequence[float]) -> Measure:
    """Let each block that is not promoted harm by itself."""
    every = range(2 ** len(harms))
    return measure_of([sum(h for at, h in enumerate(harms) if not n >> at & 1) for n in every])


ERRORS = st.lists(st.none() | st.floats(0.01, 1.0), min_size=32, max_size=32)


@given(errors=ERRORS)
def test_a_search_promotes_or_takes_back_one_block_a_step_and_ends_at_a_gain(
    errors: list[float | None],
) -> None:
    """No improvement on the way loses, and no two have one name, the number of their blocks."""
    measure = measure_of(errors)
    path, before = search_precision(BLOCKS, measure), measure(())
    promoted: set[Block] = set()
    for step in path:
        assert (step.block in promoted) is step.taken_back
        promoted ^= {step.block}
        assert set(step.after.blocks) == promoted
    if not path:
        return
    assert before is not None
    improved = improvements(before, path)
    means = [before.error.mean, *(one.error.mean for one in improved)]
    assert means == sorted(set(means), reverse=True)
    assert path[-1].after.error.mean <= means[-1] * (1 + LEAST_GAIN)
    assert means[-1] <= means[0] * (1 - LEAST_GAIN)
    found = path_points(improved, path[-1].after)
    numbers = [len(one.blocks) for one in found]
    assert len(set(numbers)) == len(numbers)
    assert found[-1] == path[-1].after


def test_blocks_that_harm_most_are_promoted_first_and_harmless_ones_not_at_all() -> None:
    path = search_precision(BLOCKS, harm_of([0.0, 0.5, 0.1, 0.0, 0.3]))
    assert [one.block.operators[0] for one in path] == [1, 4, 2]
    assert not any(one.taken_back for one in path)


def test_a_block_that_is_needed_only_on_the_way_is_taken_back() -> None:
    """Blocks 0 and 1 gain alone, and 2 alone gains as much as both."""

    def error(number: int) -> float:
        return 0.1 if number & 4 else 1.0 - 0.5 * (number & 1) - 0.2 * (number >> 1 & 1)

    errors = [error(number) for number in range(8)]
    errors[0b101] = 0.09
    errors[0b111] = 0.0895
    path = search_precision(BLOCKS[:3], measure_of(errors))
    assert [(one.block.operators[0], one.taken_back) for one in path][-1] == (1, True)
    assert {one.operators[0] for one in path[-1].after.blocks} == {0, 2}


def test_few_are_tried_to_be_taken_back_once_all_were() -> None:
    """The first of 12 blocks is needed, and the others gain so little that one will do."""
    sizes: list[int] = []

    def measure(blocks: Sequence[Block]) -> PromotedModel:
        sizes.append(len(blocks))
        needed = any(one.operators[0] == 0 for one in blocks)
        error = 1.0 - 0.9 * needed - 0.00005 * len(blocks)
        return PromotedModel(tuple(blocks), MarginDifference(error, 0), 0)

    path = search_precision([block(at) for at in range(12)], measure)
    assert [one.operators[0] for one in path[-1].after.blocks] == [0]
    backward = sizes[sizes.index(12) + 1 :]
    assert [backward.count(size) for size in (11, 10, 9)] == [12 + 4, 4, 4]


def test_a_search_goes_over_a_step_that_loses() -> None:
    """Neither block gains alone: each adds the rounding between the two."""
    measure = measure_of([1.0, 1.1, 1.2, 0.2])
    path = search_precision(BLOCKS[:2], measure)
    assert [one.block.operators[0] for one in path] == [0, 1]
    before = measure(())
    assert before is not None
    assert [len(one.blocks) for one in improvements(before, path)] == [2]


def test_where_nothing_gains_there_is_no_path() -> None:
    assert search_precision(BLOCKS, harm_of([0.0] * 4 + [0.0])) == []
    assert search_precision(BLOCKS[:1], measure_of([1.0, 0.999])) == []
    assert search_precision(BLOCKS[:1], measure_of([1.0, None])) == []
    assert search_precision(BLOCKS[:1], measure_of([None, 0.1])) == []
