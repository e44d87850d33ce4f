"""A figure with an interval that may be negative, such as a difference or a mean."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SignedEstimate:
    """A figure that was estimated, with its interval."""

    estimate: float
    low: float
    high: float


def simultaneous(confidence: float, intervals: int) -> float:
    """Return the confidence of each of several intervals, so that all of them hold together.

    After Šidák, "Rectangular confidence regions for the means of multivariate normal
    distributions", JASA 62 (1967): for two-sided intervals it holds however the estimates depend on
    one another.

    Args:
        confidence: with which all of them are to hold.
        intervals: how many there are.

    """
    return float(confidence ** (1.0 / max(1, intervals)))
