"""Several tests, or several intervals, that are to hold together.

- Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
  Statistics 6 (1979).
- Šidák, "Rectangular confidence regions for the means of multivariate normal distributions", JASA
  62 (1967).
"""

from __future__ import annotations

from collections.abc import Sequence


def holm(ps: Sequence[float]) -> list[float]:
    """Return p-values after Holm's correction: (tests,), none below what it was."""
    corrected, least = [0.0] * len(ps), 0.0
    for step, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        least = max(least, min(1.0, (len(ps) - step) * ps[index]))
        corrected[index] = least
    return corrected


def simultaneous(confidence: float, intervals: int) -> float:
    """Return the confidence of each of several intervals, so that all of them hold together.

    By Šidák's inequality it holds for two-sided intervals however the estimates depend on one
    another.

    Args:
        confidence: confidence with which all of them are to hold.
        intervals: how many there are.

    """
    return float(confidence ** (1.0 / max(1, intervals)))
