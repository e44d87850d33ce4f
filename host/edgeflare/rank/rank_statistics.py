"""Significance of differences between models: randomization test and bootstrap.

A *table of values* is (models, seeds, generators) float64: the queries that a search needed, the
budget where it found nothing within it; or how near to a seed the nearest deviating input lies, as
its share in the area under the curve of nearness. The mean of such queries is the restricted mean:
of the queries that a search makes when it stops at the budget at the latest. A mean over the
findings alone would favour the model on which fewest were found.

p is of a paired randomization test. If two models are alike, then a seed's two values might as well
have come the other way round; p is the share of all such exchanges that lead to a difference as
large. It is valid for any number of seeds; a bootstrap gives too narrow intervals for few of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from edgeflare.bench.bench_statistics import BOOTSTRAP_SEED, Estimate
from edgeflare.run.exact_statistics import exact_interval, holm

Values = NDArray[np.float64]

RESAMPLES = 20_000
"""Draws of the seeds, and of exchanges: so many, that the least p stays below .05 after Holm's
correction for 190 comparisons, those of 20 models."""

EXACT = 14
"""Differing seeds up to which all exchanges are counted, 2 to that power; above, some are drawn."""

SIGNIFICANT = 0.05
"""The corrected p below which two models differ significantly."""

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
        p: two-sided p-value; see `exchanged`.
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
    drawn = _resampled_means(each)
    pairs = list(combinations(range(len(values)), 2))
    differences = [drawn[:, a] - drawn[:, b] for a, b in pairs]
    ps = exchanged(np.stack([each[a] - each[b] for a, b in pairs]))
    return [
        _comparison(a, b, each[a] - each[b], resampled, p, corrected)
        for (a, b), resampled, p, corrected in zip(pairs, differences, ps, holm(ps), strict=True)
    ]


def exchanged(differences: Values) -> list[float]:
    """Return, for each row, the share of exchanges that lead to a difference as large.

    Up to `EXACT` seeds that differ at all this is exact. Above, the exchanges are drawn, the same
    ones for each row, and what was seen is counted as one more of them: no p is 0.

    Args:
        differences: differences of the two models on each seed: (comparisons, seeds).

    """
    large = np.abs(differences.sum(axis=1)) - 1e-9 * np.abs(differences).sum(axis=1)
    hits = np.zeros(len(differences), np.int64)
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    for _ in range(RESAMPLES // _AT_ONCE):
        signs = 2.0 * rng.integers(0, 2, (_AT_ONCE, differences.shape[1])) - 1.0
        hits += (np.abs(signs @ differences.T) >= large).sum(axis=0)
    drawn = (hits + 1) / (RESAMPLES + 1)
    return [
        float(p) if np.count_nonzero(row) > EXACT else _exact(row[row != 0.0], least)
        for row, p, least in zip(differences, drawn, large, strict=True)
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
    for one in comparisons:
        if one.significant:
            better[one.second if means[one.first] > means[one.second] else one.first] += 1
    return [1 + count for count in better]


def share(hits: int, trials: int) -> Estimate | None:
    """Return a share and its exact 95 % interval (Clopper and Pearson); None without a trial.

    None or all of the trials is no certainty: 0 of 100 leaves up to 3.6 %.
    """
    return Estimate(hits / trials, *exact_interval(hits, trials)) if trials else None


def _resampled_means(each: Values) -> Values:
    """Return the models' means on draws of the seeds with replacement: (resamples, models)."""
    seeds = each.shape[1]
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    even = np.full(seeds, 1.0 / seeds)
    parts = [
        rng.multinomial(seeds, even, size=_AT_ONCE) @ each.T / seeds
        for _ in range(RESAMPLES // _AT_ONCE)
    ]
    return np.concatenate(parts)


def _comparison(
    first: int, second: int, each: Values, resampled: Values, p: float, corrected: float
) -> ModelComparison:
    difference = float(each.mean())
    spread = float(each.std(ddof=1)) if each.size > 1 else 0.0
    low, high = np.quantile(resampled, (0.025, 0.975))
    kept = float((np.sign(resampled) == np.sign(difference)).mean()) if difference else 0.5
    return ModelComparison(
        first,
        second,
        Estimate(difference, float(low), float(high)),
        difference / spread if spread else None,
        kept,
        p,
        corrected,
    )


def _exact(differing: Values, large: float) -> float:
    sums = np.zeros(1)
    for one in differing:
        sums = np.concatenate([sums - one, sums + one])
    return float((np.abs(sums) >= large).mean())
