"""The limits of a weighted count, against those of Poisson counts."""

import numpy as np
import pytest
from scipy.stats import poisson

from edgeflare.survey.estimate.weighted_count import CountLimits, count_limits


@pytest.mark.parametrize("hits", [0, 1, 3, 10, 60])
def test_with_equal_weights_they_are_the_limits_of_a_poisson_count(hits: int) -> None:
    found = count_limits(
        items=np.asarray([10**9]),
        asked=np.asarray([10**6]),
        drawn=np.asarray([10**6]),
        hits=np.asarray([hits]),
        weight=np.asarray([1.0]),
        unasked=np.asarray([1.0]),
        confidence=0.95,
    )

    assert poisson.cdf(hits, found.high) == pytest.approx(0.025, rel=0.001)
    if hits:
        assert poisson.sf(hits - 1, found.low) == pytest.approx(0.025, rel=0.001)
    assert found.count == hits


def test_a_heavier_item_that_was_not_seen_raises_the_upper_limit() -> None:
    def found(weight: float) -> CountLimits:
        return count_limits(
            items=np.asarray([1000, 1000]),
            asked=np.asarray([500, 50]),
            drawn=np.asarray([500, 50]),
            hits=np.asarray([20, 0]),
            weight=np.asarray([2.0, weight]),
            unasked=np.asarray([0.5, 0.95]),
            confidence=0.95,
        )

    light, heavy = found(2.0), found(20.0)
    assert heavy.count == light.count
    assert heavy.high > light.high + 18.0


def test_nothing_is_open_where_all_were_asked() -> None:
    counts = np.asarray([7])
    found = count_limits(
        items=np.asarray([30]),
        asked=np.asarray([30]),
        drawn=np.asarray([30]),
        hits=counts,
        weight=np.asarray([1.0]),
        unasked=np.asarray([0.0]),
        confidence=0.95,
    )
    assert (found.low, found.count, found.high) == (7.0, 7.0, 7.0)
