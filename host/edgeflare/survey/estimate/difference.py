"""The difference of two rates that were estimated apart, with an interval."""

from __future__ import annotations

from math import hypot

from edgeflare.survey.estimate.rate import Rate


def difference(one: Rate, other: Rate) -> tuple[float, float, float]:
    """Return one rate less another: estimate, lower and upper limit.

    The limits of both are combined by the squares of their distances from the estimates (MOVER, Zou
    and Donner 2008). The rates have to be of different items.
    """
    estimate = one.estimate - other.estimate
    below = hypot(one.estimate - one.low, other.high - other.estimate)
    above = hypot(one.high - one.estimate, other.estimate - other.low)
    return estimate, estimate - below, estimate + above
