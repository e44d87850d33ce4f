"""Significance of differences between models: randomization test and bootstrap.

A *table of values* is (models, seeds, generators) float64: the queries that a search needed, the
budget where it found nothing within it; or how near to a seed the nearest deviating input lies, as
its share in the area under the curve of nearness. The mean of such queries is the restricted mean:
of the queries that a search makes when it stops at the budget at the latest. A mean over the
findings alone would favour the model on which fewest were found.

p is of a paired randomization test: if two models are alike, then a seed's two values might as well
have come the other way round.

The share p is that of all such exchanges that lead to a difference as large. The test is valid for
any number of seeds; a bootstrap gives too narrow intervals for few of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from edgeflare.statistics.bootstrap import (
    BOOTSTRAP_SEED,
    Estimate,
    Values,
    percentile_estimate,
    resampled_means,
)
from edgeflare.statistics.multiple_comparisons import holm

SIGNIFICANT = 0.05
"""The corrected p below which two models differ significantly."""

EXACT = 14
"""Differing units up to which all exchanges are counted, 2 to that power; above, some are drawn."""

DRAWN = 20_000
"""Exchanges that are drawn: so many, that the least p stays below .05 after Holm's correction for
190 comparisons, those of 20 treatments."""

_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """Two models on the same seeds.

    Attributes:
        first: position of a model.
        second: position of the other.
        difference: mean of the first less that of the second, with its 95 % interval.
        effect: the difference over its standard deviation among the seeds; None where all of them
            differ by the same.
        order_kept: share of the resamples that order the two as all seeds do; ½ where all seeds
            order them not at all.
        p: two-sided p-value; see `randomization_test`.
        p_corrected: the same after Holm's correction for all comparisons.

    """

    first: int
    second: int
    difference: Estimate
    effect: float | None
    order_kept: float
    p: float
    p_corrected: float

    @property
    def significant(self) -> bool:
        """Whether the two differ significantly."""
        return self.p_corrected < SIGNIFICANT


def compare_all(values: Values) -> list[ModelComparison]:
    """Compare each model with each other one, on the same draws of seeds."""
    each = values.mean(axis=2)
    drawn = resampled_means(each, DRAWN)
    pairs = list(combinations(range(len(values)), 2))
    differences = [drawn[:, a] - drawn[:, b] for a, b in pairs]
    ps = randomization_test(np.stack([each[a] - each[b] for a, b in pairs]))
    return [
        _comparison(a, b, each[a] - each[b], resampled, p, corrected)
        for (a, b), resampled, p, corrected in zip(pairs, differences, ps, holm(ps), strict=True)
    ]


def seeds_needed(comparisons: int) -> int:
    """Return the fewest seeds with which one of so many comparisons can be significant."""
    seeds = 1
    while comparisons * 2.0 ** (1 - seeds) >= SIGNIFICANT:
        seeds += 1
    return seeds


def places(means: Sequence[float], comparisons: Sequence[ModelComparison]) -> list[int]:
    """Return each model's place: 1 and one for each model that takes significantly more queries."""
    better = [0] * len(means)
    for comparison in comparisons:
        if comparison.significant:
            better[
                comparison.second
                if means[comparison.first] > means[comparison.second]
                else comparison.first
            ] += 1
    return [1 + count for count in better]


def _comparison(
    first: int, second: int, each: Values, resampled: Values, p: float, corrected: float
) -> ModelComparison:
    difference = float(each.mean())
    spread = float(each.std(ddof=1)) if each.size > 1 else 0.0
    kept = float((np.sign(resampled) == np.sign(difference)).mean()) if difference else 0.5
    return ModelComparison(
        first,
        second,
        percentile_estimate(difference, resampled),
        difference / spread if spread else None,
        kept,
        p,
        corrected,
    )


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
    for step in differing:
        sums = np.concatenate([sums - step, sums + step])
    return float((np.abs(sums) >= large).mean())
