"""Halves have no seed in common, and what only seeds have in common is nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.diagnose.inspect.behaviour_block import (
    CHOOSING,
    HELD_OUT,
    BehaviourBlock,
    UnitLayer,
)
from edgeflare.diagnose.inspect.inspection import Inspection
from edgeflare.diagnose.inspect.seed_halves import (
    MOST_CHOOSING,
    SeedHalves,
    disjoint_lines,
    seed_halves,
)
from edgeflare.hypothesis import UnitHypothesis

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
@pytest.mark.parametrize("number", range(4))
def test_features_of_seeds_that_have_nothing_in_common_are_nothing(seeds: int, number: int) -> None:
    rng = np.random.default_rng(number)
    drawn = seed_halves(rng.integers(10, size=seeds), 800, rng)
    hypothesis = UnitHypothesis("brightness", lambda _: 0.0, built_in=True)
    layers = (UnitLayer("CONV_2D", 0, UNITS),)
    inspection = Inspection(layers, (hypothesis,), 0.001, rng)
    inspection.add(mixed(drawn, seeds, rng))
    assert [one.measure for one in inspection.result().best if one.beyond] == []
