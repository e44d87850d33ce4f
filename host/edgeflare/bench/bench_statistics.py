"""Figures over many runs, with their confidence intervals.

A *table of values* is (seeds, generators) float64: the queries of a strategy for each seed input
under each run seed, NaN where it found nothing. Intervals are 95 % bootstrap intervals over
the seed inputs: they are drawn again with replacement, each with all of its generators, because two
searches from one seed input are not independent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

RESAMPLES = 2000
"""Resamples: so many that the third digit of an interval's ends stands."""

BOOTSTRAP_SEED = 0
"""Seed of the bootstrap: the same runs give the same intervals."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and its 95 % interval.

    Attributes:
        value: the figure.
        low, high: the ends of the interval.

    """

    value: float
    low: float
    high: float


def success_rate(values: Values) -> Estimate | None:
    """Return the share of searches that found something; None if there was no search."""
    return _estimate(np.isfinite(values).astype(np.float64), _mean)


def mean(values: Values) -> Estimate | None:
    """Return the mean over the searches that found something; None if none did."""
    return _estimate(values, _mean)


def median(values: Values) -> Estimate | None:
    """Return the median over the searches that found something; None if none did."""
    return _estimate(values, _median)


def ratio_of_means(values: Values, baseline: Values) -> Estimate | None:
    """Return mean(values) / mean(baseline) over the searches in which both found something.

    None if there is no such search.

    Args:
        values: values of a strategy.
        baseline: values of the other strategy, for the same seeds and generators.

    """
    both = np.isfinite(values) & np.isfinite(baseline)
    paired = np.stack((np.where(both, values, np.nan), np.where(both, baseline, np.nan)))
    return _estimate(paired, lambda drawn: _mean(drawn[0]) / _mean(drawn[1]))


def cumulative(values: Values) -> tuple[Values, Values]:
    """Return the success rate against what was spent: (found,) of each, both rising."""
    spent = np.sort(values[np.isfinite(values)])
    return spent, np.arange(1, spent.size + 1) / max(1, values.size)


def _estimate(values: Values, statistic: Callable[[Values], Values]) -> Estimate | None:
    """Estimate a statistic, which takes (..., seeds, generators) to (...), or None without data."""
    if not np.isfinite(values).any():
        return None
    seeds = values.shape[-2]
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    drawn = statistic(values[..., rng.integers(seeds, size=(RESAMPLES, seeds)), :])
    low, high = np.nanquantile(drawn, (0.025, 0.975))  # NaN: nothing in it was found
    return Estimate(float(statistic(values)), float(low), float(high))


def _mean(values: Values) -> Values:
    found = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        means: Values = np.where(found, values, 0.0).sum((-2, -1)) / found.sum((-2, -1))
    return means


def _median(values: Values) -> Values:
    rising = np.sort(values.reshape(*values.shape[:-2], -1), axis=-1)  # NaN comes last
    found = np.isfinite(rising).sum(-1, keepdims=True)
    middle = np.concatenate(((found - 1) // 2, found // 2), axis=-1)
    medians: Values = np.take_along_axis(rising, middle, -1).mean(-1)
    return medians
