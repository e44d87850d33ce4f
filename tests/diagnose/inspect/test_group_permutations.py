"""Permutations keep strata and groups, and mix what they may."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.diagnose.inspect.group_permutations import group_permutations


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), min_size=1, max_size=30))
def test_groups_stay_together_and_strata_are_kept(pairs: list[tuple[int, int]]) -> None:
    groups, strata = np.array(pairs, np.int64).T
    for order in group_permutations(groups, strata, 5, np.random.default_rng(0)):
        assert sorted(order) == list(range(len(pairs)))
        assert (strata[order] == strata).all()
        for group in np.unique(groups):
            assert len(np.unique(groups[order][groups == group])) == 1


def test_pairs_change_places_and_their_inputs_too() -> None:
    groups, strata = np.repeat(np.arange(5), 2), np.zeros(10, np.int64)
    orders = group_permutations(groups, strata, 400, np.random.default_rng(0))
    assert set(orders[:, 0]) == set(range(10))
    assert np.bincount(orders[:, 0]).min() > 15


def test_single_inputs_are_permuted_evenly_within_strata() -> None:
    strata = np.repeat([0, 1], 4)
    orders = group_permutations(np.arange(8), strata, 4000, np.random.default_rng(0))
    assert len(np.unique(orders, axis=0)) > 570  # of 4! × 4! = 576
