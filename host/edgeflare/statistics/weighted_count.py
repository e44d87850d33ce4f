"""The limits of a weighted count, after Fay and Feuer (1997).

A weighted count of few events is no normal variable, and a count of none is no certainty. The
lower limit takes the count as gamma distributed with its mean and variance; the upper one as if one
more event of the greatest weight had been seen. With equal weights and a large population these are
the exact limits of a Poisson count.

They are conservative where few surprises were seen. Their mid-p form is narrower, and may cover
less often than it says just there, so it was not taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.statistics.distributions import gamma_quantile


@dataclass(frozen=True, slots=True)
class CountLimits:
    """An estimated count, and its limits."""

    value: float
    low: float
    high: float


def count_limits(
    *,
    items: NDArray[np.int64],
    asked: NDArray[np.int64],
    hits: NDArray[np.int64],
    drawn: NDArray[np.int64],
    weight: NDArray[np.float64],
    unasked: NDArray[np.float64],
    confidence: float,
) -> CountLimits:
    """Return how many items are hits, given those among the items asked.

    Args:
        items: (strata,) items that may be hits.
        asked: (strata,) of them, those that were asked.
        hits: (strata,) of those, the hits.
        drawn: (strata,) items asked in the whole stratum, of which these may be a part.
        weight: (strata,) items that one that was asked stands for.
        unasked: (strata,) share of the stratum that was not asked, by which the variance of a
            sample without replacement is less.
        confidence: confidence of the two limits together.

    Raises:
        UserError: scipy is not installed.

    """
    count = float((weight * hits).sum())
    # A draw that is a hit is no other item, so hits vary less than a Poisson count.
    spread = 1.0 - hits / (drawn + 1.0)
    variance = float((weight**2 * hits * unasked * spread).sum())
    left = items > asked
    heaviest = float((weight * unasked)[left].max()) if left.any() else 0.0
    if heaviest == 0.0:
        return CountLimits(count, count, count)
    most = float(hits.sum() + (items - asked).sum())
    more = (count + heaviest, variance + heaviest**2)
    low, high = gamma_limits((count, variance), more, confidence)
    return CountLimits(min(count, most), min(low, count), max(min(high, most), min(count, most)))


def gamma_limits(
    found: tuple[float, float], more: tuple[float, float], confidence: float
) -> tuple[float, float]:
    """Return the lower quantile of one gamma distribution, and the upper one of another.

    Args:
        found: mean and variance of a count.
        more: the same as if one more event had been seen.
        confidence: confidence of the two limits together.

    Raises:
        UserError: scipy is not installed.

    """
    tail = (1.0 - confidence) / 2.0
    # A variance of 0: nothing was seen, or all were asked where it was.
    low = gamma_quantile(tail, *found) if found[1] else found[0]
    return low, gamma_quantile(1.0 - tail, *more) if more[1] else more[0]
