"""Deviates, p-values and sample sizes by the normal distribution."""

from __future__ import annotations

from math import ceil
from statistics import NormalDist


def normal_deviate(confidence: float = 0.95) -> float:
    """Return the standard errors to each side of an estimate in an interval of a confidence."""
    return NormalDist().inv_cdf(0.5 + confidence / 2.0)


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


def sample_size(half_width: float, confidence: float, items: int, rate: float) -> int:
    """Return how many of so many items a simple random sample needs for an interval of a rate.

    Args:
        half_width: half the width that the interval may have.
        confidence: confidence of the interval.
        items: items that the sample is drawn from, without replacement.
        rate: rate that is expected.

    """
    unbounded = rate * (1.0 - rate) * (normal_deviate(confidence) / half_width) ** 2
    return ceil(unbounded / (1.0 + unbounded / items))
