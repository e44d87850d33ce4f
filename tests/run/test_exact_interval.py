"""Tests of edgeflare.run.exact_interval."""

from __future__ import annotations

import numpy as np

from edgeflare.run.exact_interval import median_interval


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
