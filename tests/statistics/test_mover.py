from __future__ import annotations

from dataclasses import dataclass

import pytest

from edgeflare.statistics.mover import difference


@dataclass(frozen=True)
class Interval:
    value: float
    low: float
    high: float


def test_limits_of_a_difference_are_combined_by_squares() -> None:
    one, other = Interval(0.2, 0.17, 0.24), Interval(0.1, 0.06, 0.13)
    low, high = 0.1 - (0.03**2 + 0.03**2) ** 0.5, 0.1 + (0.04**2 + 0.04**2) ** 0.5
    assert difference(one, other) == pytest.approx((0.1, low, high))
    assert difference(other, one) == pytest.approx((-0.1, -high, -low))
