"""The interval of a rate from repetitions, and what could be where nothing was seen."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from edgeflare.survey.estimate.weighted_count import require_scipy

_ROUNDING = 1e-15
"""A mean that is not above this is 0 with errors of rounding."""


def repetition_interval(
    estimates: Sequence[float], confidence: float
) -> tuple[float, float, float]:
    """Return the mean of uncorrelated, unbiased estimates, and its lower and upper limit.

    The limits are those of Student's t, on the logarithmic scale: estimates of a small rate are
    skewed, and some may be 0. Where the mean is 0 or below, it and its limits are 0.

    Args:
        estimates: at least two.
        confidence: of the interval.

    Raises:
        UserError: scipy is not installed.

    """
    require_scipy()
    from scipy.special import stdtrit  # noqa: PLC0415 - an extra, and slow to import

    count = len(estimates)
    mean = float(np.mean(estimates))
    if mean <= _ROUNDING:
        return 0.0, 0.0, 0.0
    error = float(np.std(estimates, ddof=1)) / sqrt(count)
    width = float(stdtrit(count - 1, 0.5 + confidence / 2.0)) * error / mean
    return mean, mean * exp(-width), min(1.0, mean * exp(width))


def unseen_limit(
    weight: NDArray[np.float64],
    asked: NDArray[np.int64],
    surprises: NDArray[np.int64],
    confidence: float,
) -> float:
    """Return what the shells without a surprise could add to a rate at most.

    Had they more, together, one of their points that were asked would have been a surprise with at
    least the confidence's upper part. The worst case is that all lies where a point that was asked
    stands for the greatest weight.

    Args:
        weight: (shells,) the probability of each.
        asked: (shells,) points that were asked.
        surprises: (shells,) of those, how many the host did not foretell.
        confidence: of an interval; the limit has its upper part, such as 97.5 % of 95 %.

    """
    unseen = (surprises == 0) & (weight > 0.0)
    if not unseen.any():
        return 0.0
    heaviest = np.minimum(-log((1.0 - confidence) / 2.0) / np.maximum(asked, 1), 1.0) * weight
    return float(heaviest[unseen].max())
