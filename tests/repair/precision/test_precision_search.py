"""Tests of edgeflare.repair.precision.precision_search, by made-up errors of sets of blocks."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from edgeflare.diagnose.layer_difference import LayerName
from edgeflare.repair.precision.blocks import Block
from edgeflare.repair.precision.margin_comparison import MarginDifference
from edgeflare.repair.precision.precision_candidates import path_points
from edgeflare.repair.precision.precision_search import (
    LEAST_GAIN,
    improvements,
    search_precision,
)
from edgeflare.repair.precision.promoted_models import Measure, PromotedModel

BLOCKS = [Block(LayerName(at, "CONV_2D", ""), (at,)) for at in range(5)]


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
def test_no_two_candidates_have_one_name(errors: list[float | None]) -> None:
    """They are named by how many blocks are promoted."""
    measure = measure_of(errors)
    path, before = search_precision(BLOCKS, measure), measure(())
    if path and before is not None:
        found = path_points(improvements(before, path), path[-1].after)
        numbers = [len(one.blocks) for one in found]
        assert len(set(numbers)) == len(numbers)
        assert found[-1] == path[-1].after


@given(errors=ERRORS)
def test_what_a_search_ends_at_gains_and_no_improvement_loses(
    errors: list[float | None],
) -> None:
    measure = measure_of(errors)
    path = search_precision(BLOCKS, measure)
    if not path:
        return
    before = measure(())
    assert before is not None
    improved = improvements(before, path)
    means = [before.error.mean, *(one.error.mean for one in improved)]
    assert means == sorted(means, reverse=True)
    assert len(set(means)) == len(means)
    assert path[-1].after.error.mean <= min(means) * (1 + LEAST_GAIN)
    assert min(means) <= means[0] * (1 - LEAST_GAIN)


@given(errors=ERRORS)
def test_each_step_promotes_or_takes_back_one_block(errors: list[float | None]) -> None:
    promoted: set[Block] = set()
    for step in search_precision(BLOCKS, measure_of(errors)):
        assert (step.block in promoted) is step.taken_back
        promoted ^= {step.block}
        assert set(step.after.blocks) == promoted


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
