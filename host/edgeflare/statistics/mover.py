"""The interval of a difference from those of its two parts (MOVER).

Zou and Donner, "Construction of confidence limits about effect measures: a general approach",
Statistics in Medicine 27 (2008).
"""

from __future__ import annotations

from math import hypot
from typing import Protocol


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
