"""Inputs of an inspection lie on both sides of the boundary, and those of a line together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.diagnose.inspect.behaviour_block import CHOOSING, HELD_OUT, BehaviourBlock, UnitLayer
from edgeflare.diagnose.inspect.group_permutations import group_permutations
from edgeflare.diagnose.inspect.inspected_inputs import (
    AT_ONCE,
    LEAST_LINES,
    STRATA,
    Found,
    InspectedInputs,
    inspected_inputs,
)
from edgeflare.diagnose.inspect.inspection import Inspection
from edgeflare.diagnose.inspect.seed_halves import (
    MOST_CHOOSING,
    SeedHalves,
    disjoint_lines,
    seed_halves,
)
from edgeflare.errors import UserError
from edgeflare.hypothesis import UnitHypothesis

WEIGHTS = np.random.default_rng(0).normal(size=(6, 3))
WEIGHTS -= WEIGHTS.mean(axis=0)  # each class is the largest somewhere
SEEDS = np.random.default_rng(1).integers(0, 256, (300, 2, 3, 1), np.uint8)
COUNT = 200


def scores(inputs: NDArray[np.generic]) -> NDArray[np.float64]:
    assert len(inputs) <= AT_ONCE
    return np.asarray(inputs.reshape(len(inputs), -1).astype(np.float64) @ WEIGHTS)


def labels(inputs: NDArray[np.generic]) -> NDArray[np.int64]:
    flat = inputs.reshape(len(inputs), -1).astype(np.float64)
    return np.asarray((flat @ WEIGHTS).argmax(1), np.int64)


def made(
    count: int = COUNT,
    found: Sequence[Found] = (),
    seed: int = 0,
    seeds: NDArray[np.uint8] = SEEDS,
) -> InspectedInputs:
    return inspected_inputs(seeds, scores, found, count, np.random.default_rng(seed))


def arrays(taken: InspectedInputs) -> NDArray[np.uint8]:
    return np.concatenate(list(taken.parts()))


def test_two_inputs_of_a_line_are_one_group_and_lie_on_both_sides() -> None:
    taken = made()
    inputs = arrays(taken)
    assert inputs.shape == (len(taken), 2, 3, 1) == (COUNT, 2, 3, 1)
    for group in range(COUNT // 2):
        at = np.flatnonzero(taken.groups == group)
        assert len(at) == 2
        assert at[1] == at[0] + 1
        assert taken.halves[at[0]] == taken.halves[at[1]]
        assert len(set(labels(inputs[at]))) == 2
        assert np.abs(np.diff(inputs[at].astype(int), axis=0)).max() <= 1


def test_any_beginning_has_as_many_of_each_half() -> None:
    halves = made().halves
    assert np.bincount(halves).tolist() == [COUNT // 2, COUNT // 2]
    for end in range(20, COUNT, 20):
        assert abs(2 * int((halves[:end] == HELD_OUT).sum()) - end) <= 4


def test_findings_are_a_tenth_of_those_to_choose_on_and_none_is_of_a_held_out_seed() -> None:
    made_of = np.repeat(np.stack(np.divmod(np.arange(300), 100), axis=1), 3, axis=1)
    found = [Found(seed, one.reshape(2, 3, 1)) for seed, one in enumerate(made_of.astype(np.uint8))]
    rng = np.random.default_rng(0)
    drawn = seed_halves(labels(SEEDS), COUNT // 2, rng)
    taken = made(found=found)
    inputs = arrays(taken)
    at = np.flatnonzero(taken.groups >= COUNT // 2)
    chosen = int((taken.halves == CHOOSING).sum())
    assert len(at) == len(set(taken.groups[at])) == chosen // 10 > 0
    assert (taken.halves[at] == CHOOSING).all()
    seeds = {100 * int(one[0, 0, 0]) + int(one[1, 0, 0]) for one in inputs[at]}
    assert len(seeds) == len(at)
    assert not seeds & set(drawn.held_out.reshape(-1).tolist())


def test_strata_are_bins_of_the_margin_with_equally_many_inputs() -> None:
    taken = made(found=[Found(0, SEEDS[0]), Found(1, SEEDS[1])])
    ordered = np.sort(taken.scores, axis=1)
    margins = ordered[:, -1] - ordered[:, -2]
    counts = np.bincount(taken.strata, minlength=STRATA)
    assert counts.max() - counts.min() <= 2
    for one in range(STRATA - 1):
        assert margins[taken.strata == one].max() < margins[taken.strata == one + 1].min()


def test_the_order_is_drawn_from_the_seed_whatever_rows_are_taken_together() -> None:
    one, same, other = made(), made(), made(seed=1)
    assert np.array_equal(arrays(one), arrays(same))
    assert np.array_equal(one.groups, same.groups)
    assert not np.array_equal(one.groups, other.groups)
    assert not np.array_equal(one.groups, np.sort(one.groups))
    taken = made(found=[Found(0, SEEDS[0])])
    whole = arrays(taken)
    assert np.array_equal(taken.rows(slice(5, 18)), whole[5:18])
    assert np.array_equal(np.stack([taken.rows(slice(n, n + 1))[0] for n in range(40)]), whole[:40])


def test_few_seeds_give_more_lines_to_choose_on() -> None:
    taken = made(1600, seeds=SEEDS[:120])
    chosen, held_out = np.bincount(taken.halves).tolist()
    assert chosen == 3 * held_out
    assert 2 * LEAST_LINES <= held_out <= 60


def test_too_few_lines_are_refused() -> None:
    assert len(made(4 * LEAST_LINES)) == 4 * LEAST_LINES
    line = r"300 seeds and --inputs 78 give 19 lines .* raise --inputs to 80 or more, or search"
    with pytest.raises(UserError, match=line):
        made(4 * LEAST_LINES - 2)
    with pytest.raises(UserError, match="a pair with 100 seeds or more, of several classes"):
        made(seeds=SEEDS[:40])
    with pytest.raises(UserError, match="0 lines"):
        made(seeds=np.repeat(SEEDS[:1], 300, axis=0))


UNITS = 100


@given(st.lists(st.integers(0, 4), max_size=60))
def test_each_position_is_in_one_pair_and_what_is_left_over_has_one_label(said: list[int]) -> None:
    labels = np.array(said, np.int64)
    pairs = disjoint_lines(labels)
    used = pairs.reshape(-1).tolist()
    assert len(set(used)) == len(used)
    assert (labels[pairs[:, 0]] != labels[pairs[:, 1]]).all()
    assert len({label for at, label in enumerate(said) if at not in used}) <= 1


@given(st.integers(0, 10_000), st.integers(0, 200), st.integers(1, 5), st.integers(0, 150))
def test_no_seed_is_in_both_halves(number: int, seeds: int, classes: int, most: int) -> None:
    rng = np.random.default_rng(number)
    labels = rng.integers(classes, size=seeds)
    drawn = seed_halves(labels, most, rng)
    chosen, held_out = drawn.choosing.reshape(-1).tolist(), drawn.held_out.reshape(-1).tolist()
    assert not set(chosen) & set(held_out)
    assert len(set(held_out)) == len(held_out)
    assert len(drawn.choosing) + len(drawn.held_out) <= most
    assert len(drawn.choosing) <= max(MOST_CHOOSING * len(drawn.held_out), most % 2)
    for half in (drawn.choosing, drawn.held_out):
        assert (labels[half[:, 0]] != labels[half[:, 1]]).all()


def mixed(drawn: SeedHalves, seeds: int, rng: np.random.Generator) -> BehaviourBlock:
    """Units and a hypothesis that are independent features of seeds, mixed along their lines."""
    ends = np.concatenate([drawn.held_out, drawn.choosing])
    share = rng.random(len(ends))[:, None]

    def along(features: NDArray[np.float64]) -> NDArray[np.float64]:
        on_lines = features[ends[:, 0]] * share + features[ends[:, 1]] * (1 - share)
        twice = np.repeat(on_lines, 2, axis=0)
        return np.asarray(twice + 0.1 * rng.normal(size=twice.shape))

    groups = np.arange(2 * len(ends)) // 2
    return BehaviourBlock(
        {"activation": along(rng.normal(size=(seeds, UNITS))).astype(np.float32)},
        along(rng.normal(size=(seeds, 1))),
        np.zeros(len(groups)),
        groups,
        np.where(groups < len(drawn.held_out), HELD_OUT, CHOOSING).astype(np.int8),
        np.zeros(len(groups), np.int64),
    )


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [90, 200])
@pytest.mark.parametrize("number", range(2))
def test_features_of_seeds_that_have_nothing_in_common_are_nothing(seeds: int, number: int) -> None:
    rng = np.random.default_rng(number)
    drawn = seed_halves(rng.integers(10, size=seeds), 800, rng)
    hypothesis = UnitHypothesis("brightness", lambda _: 0.0, built_in=True)
    layers = (UnitLayer("CONV_2D", 0, UNITS),)
    inspection = Inspection(layers, (hypothesis,), 0.001, rng)
    inspection.add(mixed(drawn, seeds, rng))
    assert [one.measure for one in inspection.result().best if one.beyond] == []


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), min_size=1, max_size=30))
def test_groups_stay_together_and_strata_are_kept(pairs: list[tuple[int, int]]) -> None:
    groups, strata = np.array(pairs, np.int64).T
    for order in group_permutations(groups, strata, 5, np.random.default_rng(0)):
        assert sorted(order) == list(range(len(pairs)))
        assert (strata[order] == strata).all()
        for group in np.unique(groups):
            assert len(np.unique(groups[order][groups == group])) == 1


def test_permutations_mix_what_they_may() -> None:
    """Pairs change places and their inputs too; single inputs are permuted evenly within strata."""
    groups, strata = np.repeat(np.arange(5), 2), np.zeros(10, np.int64)
    orders = group_permutations(groups, strata, 400, np.random.default_rng(0))
    assert set(orders[:, 0]) == set(range(10))
    assert np.bincount(orders[:, 0]).min() > 15
    strata = np.repeat([0, 1], 4)
    orders = group_permutations(np.arange(8), strata, 4000, np.random.default_rng(0))
    assert len(np.unique(orders, axis=0)) > 570  # of 4! × 4! = 576
