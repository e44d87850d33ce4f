"""The bootstrap: figures with intervals of 95 %, from draws of their units with replacement.

A *table of values* is (units, trials) float64: what each trial with a unit took, such as a search
from a seed input, NaN where it came to nothing. Each unit is drawn with all of its trials, because
two trials with one unit are not independent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.statistics.binomial import exact_interval

Values = NDArray[np.float64]

RESAMPLES = 2000
"""Resamples: so many that the third digit of an interval's ends stands."""

_AT_ONCE = 2**22
"""Values that are drawn at once, at most: 32 MB, and a few times that while they are summed up."""

BOOTSTRAP_SEED = 0
"""Seed of the bootstrap: the same values give the same intervals."""


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
    """Return the share of trials that came to something; None if there was no trial.

    Where all or none did, draws of the units do not vary, and the interval is the exact one of a
    share of as many units.
    """
    found = np.isfinite(values)
    if found.size and (found.all() or not found.any()):
        units = found.shape[0]
        return Estimate(float(found.all()), *exact_interval(units * int(found.all()), units))
    return _estimate(found.astype(np.float64), _mean)


def mean(values: Values) -> Estimate | None:
    """Return the mean over the trials that came to something; None if none did."""
    return _estimate(values, _mean)


def median(values: Values) -> Estimate | None:
    """Return the median over the trials that came to something; None if none did."""
    return _estimate(values, _median)


def ratio_of_means(values: Values, baseline: Values) -> Estimate | None:
    """Return mean(values) / mean(baseline) over the trials in which both came to something.

    None if there is no such trial.

    Args:
        values: table of values.
        baseline: that of another method, with the same units and trials.

    """
    both = np.isfinite(values) & np.isfinite(baseline)
    paired = np.stack((np.where(both, values, np.nan), np.where(both, baseline, np.nan)))
    return _estimate(paired, lambda drawn: _mean(drawn[0]) / _mean(drawn[1]))


def resampled_means(values: Values, resamples: int = RESAMPLES) -> Values:
    """Return the means of rows on draws of their columns, the units: (resamples, rows).

    Args:
        values: (rows, units); all rows have the same draws.
        resamples: how many draws.

    """
    units = values.shape[1]
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    even = np.full(units, 1.0 / units)
    return np.concatenate(
        [
            rng.multinomial(units, even, size=some) @ values.T / units
            for some in portions(resamples, units)
        ]
    )


def portions(draws: int, values: int) -> Iterator[int]:
    """Yield how many draws to make at once, so that however many there are take no more memory.

    Args:
        draws: how many in all.
        values: values of one draw.

    """
    most = max(1, _AT_ONCE // max(1, values))
    for begun in range(0, draws, most):
        yield min(most, draws - begun)


def percentile_estimate(value: float, resampled: Values) -> Estimate:
    """Return a figure with the interval of its resamples, of which NaN are left out."""
    low, high = np.nanquantile(resampled, (0.025, 0.975))
    return Estimate(value, float(low), float(high))


def _estimate(values: Values, statistic: Callable[[Values], Values]) -> Estimate | None:
    """Estimate a statistic, which takes (..., units, trials) to (...), or None without data."""
    if not np.isfinite(values).any():
        return None
    units = values.shape[-2]
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    drawn = [
        statistic(values[..., rng.integers(units, size=(some, units)), :])
        for some in portions(RESAMPLES, values.size)
    ]
    return percentile_estimate(float(statistic(values)), np.concatenate(drawn))


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
