"""The interval of a mean of repeated estimates of a small rate, by Student's t on their spread."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, sqrt
from typing import Final

import numpy as np

from edgeflare.statistics.distributions import student_quantile

_ROUNDING: Final = 1e-15
"""A mean that is not above this is 0 with errors of rounding."""


def repetition_interval(
    estimates: Sequence[float], confidence: float
) -> tuple[float, float, float]:
    """Return the mean of uncorrelated, unbiased estimates, and its lower and upper limit.

    The limits are those of Student's t, on the logarithmic scale: estimates of a small rate are
    skewed, and some may be 0. Where the mean is 0 or below, it and its limits are 0.

    Args:
        estimates: estimates of the repetitions; two or more.
        confidence: confidence of the interval.

    Raises:
        UserError: scipy is not installed.

    """
    count = len(estimates)
    mean = float(np.mean(estimates))
    if mean <= _ROUNDING:
        return 0.0, 0.0, 0.0
    error = float(np.std(estimates, ddof=1)) / sqrt(count)
    width = student_quantile(0.5 + confidence / 2.0, count - 1) * error / mean
    return mean, min(1.0, mean * exp(-width)), min(1.0, mean * exp(width))
