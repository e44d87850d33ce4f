"""The difference of two rates."""

import pytest

from edgeflare.survey.estimate.difference import difference
from edgeflare.survey.estimate.rate import Rate


def test_limits_are_combined_by_squares() -> None:
    one, other = Rate(0.2, 0.17, 0.24, 100, 50, 10), Rate(0.1, 0.06, 0.13, 100, 50, 5)
    estimate, low, high = difference(one, other)
    assert estimate == pytest.approx(0.1)
    assert low == pytest.approx(0.1 - (0.03**2 + 0.03**2) ** 0.5)
    assert high == pytest.approx(0.1 + (0.04**2 + 0.04**2) ** 0.5)


def test_a_difference_is_the_negative_of_its_reverse() -> None:
    one, other = Rate(0.2, 0.17, 0.24, 100, 50, 10), Rate(0.1, 0.06, 0.13, 100, 50, 5)
    estimate, low, high = difference(one, other)
    assert difference(other, one) == pytest.approx((-estimate, -high, -low))
