"""Tests of edgeflare.repair.judging.seed_split."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.repair.judging.seed_split import split_seeds

LABELS = st.lists(st.integers(-1, 4), min_size=1, max_size=80)


@given(LABELS, st.integers(0, 100))
def test_each_seed_is_in_one_part(labels: list[int], number: int) -> None:
    split = split_seeds(np.array(labels), np.random.default_rng(number))
    rows = np.concatenate([split.fit, split.choose, split.judge])
    assert sorted(rows.tolist()) == list(range(len(labels)))


@given(LABELS, st.integers(0, 100))
def test_each_part_has_its_share_of_each_label_to_within_one_seed(
    labels: list[int], number: int
) -> None:
    split = split_seeds(np.array(labels), np.random.default_rng(number))
    for label in set(labels):
        count = labels.count(label)
        for part, fifths in ((split.fit, 3), (split.choose, 1), (split.judge, 1)):
            mine = sum(labels[row] == label for row in part)
            assert abs(mine - count * fifths / 5) < 1.5


def test_another_generator_seed_divides_otherwise() -> None:
    labels = np.arange(50) % 10
    one, same, other = (split_seeds(labels, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert one.judge.tolist() == same.judge.tolist() != other.judge.tolist()
