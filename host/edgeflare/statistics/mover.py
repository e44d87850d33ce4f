"""The interval of a difference from those of its two parts (MOVER), and the p-value of an interval.

Zou and Donner, "Construction of confidence limits about effect measures: a general approach",
Statistics in Medicine 27 (2008).
"""

from __future__ import annotations

from math import hypot
from statistics import NormalDist
from typing import Protocol

from edgeflare.statistics.distributions import normal_deviate


class IntervalEstimate(Protocol):
    """A figure with the limits of its interval."""

    @property
    def value(self) -> float:
        """The figure."""

    @property
    def low(self) -> float:
        """The lower limit."""

    @property
    def high(self) -> float:
        """The upper limit."""


def difference(one: IntervalEstimate, other: IntervalEstimate) -> tuple[float, float, float]:
    """Return one figure less another: estimate, lower and upper limit.

    The limits of both are combined by the squares of their distances from the estimates. The two
    have to be of different items.
    """
    estimate = one.value - other.value
    below = hypot(one.value - one.low, other.high - other.value)
    above = hypot(one.high - one.value, other.value - other.low)
    return estimate, estimate - below, estimate + above


def p_value_of_interval(estimate: float, low: float, high: float, confidence: float) -> float:
    """Return the two-sided p-value of 0, from the limit on that side of an estimate.

    Args:
        estimate: what was estimated.
        low: lower limit of its interval.
        high: upper limit.
        confidence: confidence of the interval.

    """
    away = abs(estimate)
    reach = estimate - low if estimate > 0.0 else high - estimate
    if away == 0.0 or reach <= 0.0:
        return 1.0 if away == 0.0 else 0.0
    return 2.0 * NormalDist().cdf(-normal_deviate(confidence) * away / reach)
