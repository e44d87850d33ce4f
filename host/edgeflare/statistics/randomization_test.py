"""The paired randomization test: whether two treatments of the same units differ.

If they are alike, then a unit's two values might as well have come the other way round; p is the
share of all such exchanges that lead to a difference as large. It is valid for any number of units;
a bootstrap gives too narrow intervals for few of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare.statistics.bootstrap import BOOTSTRAP_SEED

EXACT = 14
"""Differing units up to which all exchanges are counted, 2 to that power; above, some are drawn."""

DRAWN = 20_000
"""Exchanges that are drawn: so many, that the least p stays below .05 after Holm's correction for
190 comparisons, those of 20 treatments."""

_AT_ONCE = 2_000


def randomization_test(differences: NDArray[np.float64]) -> list[float]:
    """Return, for each row, the share of exchanges that lead to a difference as large.

    Up to `EXACT` units that differ at all this is exact. Above, the exchanges are drawn, the same
    ones for each row, and what was seen is counted as one more of them: no p is 0.

    Args:
        differences: differences of the two treatments of each unit: (comparisons, units).

    """
    large = np.abs(differences.sum(axis=1)) - 1e-9 * np.abs(differences).sum(axis=1)
    hits = np.zeros(len(differences), np.int64)
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    for _ in range(DRAWN // _AT_ONCE):
        signs = 2.0 * rng.integers(0, 2, (_AT_ONCE, differences.shape[1])) - 1.0
        hits += (np.abs(signs @ differences.T) >= large).sum(axis=0)
    drawn = (hits + 1) / (DRAWN + 1)
    return [
        float(p) if np.count_nonzero(row) > EXACT else _exact(row[row != 0.0], least)
        for row, p, least in zip(differences, drawn, large, strict=True)
    ]


def _exact(differing: NDArray[np.float64], large: float) -> float:
    sums = np.zeros(1)
    for one in differing:
        sums = np.concatenate([sums - one, sums + one])
    return float((np.abs(sums) >= large).mean())
