"""Tests of edgeflare.repair.shifts.fold_assignment."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.repair.shifts.fold_assignment import FOLDS, assign_folds, fold_of


@given(labels=st.lists(st.integers(0, 3), min_size=FOLDS, max_size=60), split=st.integers(0, 9))
def test_folds_are_equal_and_each_has_its_share_of_every_label(
    labels: list[int], split: int
) -> None:
    ids = np.arange(len(labels)) * 3
    assigned = assign_folds(ids, np.array(labels), split)
    assert sorted(assigned) == ids.tolist()
    sizes = Counter(assigned.values())
    assert max(sizes.values()) - min(sizes[fold] for fold in range(FOLDS)) <= 1
    for label in set(labels):
        mine = Counter(assigned[3 * at] for at, one in enumerate(labels) if one == label)
        assert max(mine.values()) - min(mine[fold] for fold in range(FOLDS)) <= 1


def test_what_was_made_from_a_seed_is_in_its_fold() -> None:
    assigned = assign_folds(np.arange(10), np.zeros(10, np.int64), 0)
    assert fold_of(np.array([4, 4, 9]), assigned).tolist() == [
        assigned[4],
        assigned[4],
        assigned[9],
    ]


def test_another_split_assigns_other_folds() -> None:
    ids, labels = np.arange(40), np.zeros(40, np.int64)
    assert (
        assign_folds(ids, labels, 0) == assign_folds(ids, labels, 0) != assign_folds(ids, labels, 1)
    )
