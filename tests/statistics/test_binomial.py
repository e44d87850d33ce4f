"""The sign test, and the intervals of a share and of a median."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.statistics.binomial import exact_interval, median_interval, sign_test, surely_more

COUNTS = st.integers(0, 120)


@given(COUNTS, COUNTS)
def test_p_is_the_sum_of_both_tails_of_the_binomial_distribution(better: int, worse: int) -> None:
    changed = better + worse
    uneven = abs(better - worse)
    hits = sum(comb(changed, k) for k in range(changed + 1) if abs(2 * k - changed) >= uneven)
    assert sign_test(better, worse) == pytest.approx(hits / 2**changed, rel=1e-9)
    assert sign_test(better, worse) == sign_test(worse, better)


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


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [
        *[(0, 100, 0.0, 0.0362), (100, 100, 0.9638, 1.0), (5, 20, 0.0866, 0.4910)],
        *[(1, 1, 0.025, 1.0), (120, 100, 0.9638, 1.0)],  # more than all are all
    ],
)
def test_the_exact_interval_of_a_share(hits: int, trials: int, low: float, high: float) -> None:
    assert exact_interval(hits, trials) == pytest.approx((low, high), abs=1e-4)


@given(st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_share_lies_in_its_interval(counted: tuple[int, int]) -> None:
    hits, trials = counted
    low, high = exact_interval(hits, trials)
    assert 0.0 <= low <= hits / trials <= high <= 1.0
    assert low == pytest.approx(1.0 - exact_interval(trials - hits, trials)[1])


def test_six_of_six_surely_changed_for_the_better() -> None:
    """With p 2 / 64; five of five have 2 / 32."""
    assert surely_more(6, 0)
    assert not surely_more(5, 0)
    assert not surely_more(0, 6)
