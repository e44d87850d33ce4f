"""Significance of differences between models: randomization test and bootstrap.

A *table of values* is (models, seeds, generators) float64: the queries that a search needed, the
budget where it found nothing within it; or how near to a seed the nearest deviating input lies, as
its share in the area under the curve of nearness. The mean of such queries is the restricted mean:
of the queries that a search makes when it stops at the budget at the latest. A mean over the
findings alone would favour the model on which fewest were found.

p is of a paired randomization test: if two models are alike, then a seed's two values might as well
have come the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from edgeflare.statistics.bootstrap import (
    Estimate,
    Values,
    percentile_estimate,
    resampled_means,
)
from edgeflare.statistics.multiple_comparisons import holm
from edgeflare.statistics.randomization_test import DRAWN, randomization_test

SIGNIFICANT = 0.05
"""The corrected p below which two models differ significantly."""


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
    for one in comparisons:
        if one.significant:
            better[one.second if means[one.first] > means[one.second] else one.first] += 1
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
