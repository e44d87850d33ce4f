"""The sign test, Holm's correction, and the interval of a median."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.run.exact_statistics import holm, median_interval, sign_test

COUNTS = st.integers(0, 120)


@given(COUNTS, COUNTS)
def test_p_is_the_sum_of_both_tails_of_the_binomial_distribution(better: int, worse: int) -> None:
    changed = better + worse
    uneven = abs(better - worse)
    hits = sum(comb(changed, k) for k in range(changed + 1) if abs(2 * k - changed) >= uneven)
    assert sign_test(better, worse) == pytest.approx(hits / 2**changed, rel=1e-9)
    assert sign_test(better, worse) == sign_test(worse, better)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12))
def test_holm_keeps_the_order_and_makes_nothing_more_certain(ps: list[float]) -> None:
    corrected = holm(ps)
    assert all(p <= after <= 1.0 for p, after in zip(ps, corrected, strict=True))
    by_p = [corrected[i] for i in sorted(range(len(ps)), key=ps.__getitem__)]
    assert by_p == sorted(by_p)
    assert min(corrected) == pytest.approx(min(1.0, len(ps) * min(ps)))
    # As in his paper:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_the_interval_contains_the_median_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    for count in (10, 40):
        ends = [median_interval(rng.exponential(size=count).tolist(), 0.99) for _ in range(500)]
        share = np.mean([low <= np.log(2.0) <= high for low, high in ends])
        assert 0.98 <= share <= 1.0


def test_the_ends_of_the_interval_are_values() -> None:
    assert median_interval([3.0, 1.0, 2.0]) == (1.0, 3.0)
    assert median_interval([*map(float, range(2000))], 0.99)[0] > 900.0
    assert median_interval([*map(float, range(10_000))])[0] == 4901.0
