from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import poisson

from edgeflare.statistics.weighted_count import CountLimits, count_limits


def _count(
    items: list[int], asked: list[int], hits: list[int], weight: list[float], unasked: list[float]
) -> CountLimits:
    """Return the limits of the strata's counts, where all that were asked were drawn."""
    return count_limits(
        items=np.asarray(items),
        asked=np.asarray(asked),
        drawn=np.asarray(asked),
        hits=np.asarray(hits),
        weight=np.asarray(weight),
        unasked=np.asarray(unasked),
        confidence=0.95,
    )


@pytest.mark.parametrize("hits", [0, 1, 3, 10, 60])
def test_limits_of_a_count_with_equal_weights_are_those_of_a_poisson_count(hits: int) -> None:
    found = _count([10**9], [10**6], [hits], [1.0], [1.0])
    assert poisson.cdf(hits, found.high) == pytest.approx(0.025, rel=0.001)
    if hits:
        assert poisson.sf(hits - 1, found.low) == pytest.approx(0.025, rel=0.001)
    assert found.value == hits


def test_a_heavier_item_that_was_not_seen_raises_the_upper_limit_of_a_count() -> None:
    light, heavy = (
        _count([1000, 1000], [500, 50], [20, 0], [2.0, weight], [0.5, 0.95])
        for weight in (2.0, 20.0)
    )
    assert heavy.value == light.value
    assert heavy.high > light.high + 18.0


def test_nothing_of_a_count_is_open_where_all_were_asked() -> None:
    found = _count([30], [30], [7], [1.0], [0.0])
    assert (found.low, found.value, found.high) == (7.0, 7.0, 7.0)


def test_few_that_were_not_asked_leave_little_open() -> None:
    found = _count([100], [90], [45], [100 / 90], [0.1])
    assert found.value == 50.0
    assert 46.0 < found.low < 48.0
    assert 52.0 < found.high < 54.5  # of 55, were all ten hits
