"""Holm's correction of p-values where several hypotheses are tested at once.

Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics
6 (1979).
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
