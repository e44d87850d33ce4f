"""The rank: models in the order of how many queries it takes to make them deviate.

A further measure says how near to the seeds they do; it decides no place.

Significance of differences between models is by a randomization test and a bootstrap. A *table of
values* is (models, seeds, generators) float64: the queries that a search needed, the budget where
it found nothing within it; or how near to a seed the nearest deviating input lies, as its share in
the area under the curve of nearness. The mean of such queries is the restricted mean: of the
queries that a search makes when it stops at the budget at the latest. A mean over the findings
alone would favour the model on which fewest were found.

p is of a paired randomization test: if two models are alike, then a seed's two values might as well
have come the other way round. The share p is that of all such exchanges that lead to a difference
as large. The test is valid for any number of seeds; a bootstrap gives too narrow intervals for few
of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.models.pair import Pair
from edgeflare.rank.model_measurements import ModelMeasurements
from edgeflare.rank.model_runs import CorrectCounts, ModelRuns
from edgeflare.record.json_types import Amount, Count, CountFromOne, Sha256
from edgeflare.statistics.binomial import exact_interval
from edgeflare.statistics.bootstrap import (
    BOOTSTRAP_SEED,
    Estimate,
    Values,
    mean,
    percentile_estimate,
    portions,
    resampled_means,
    success_rate,
)
from edgeflare.statistics.multiple_comparisons import holm

SIGNIFICANT = 0.05
"""The corrected p below which two models differ significantly."""

EXACT = 14
"""Differing units up to which all exchanges are counted, 2 to that power; above, some are drawn."""

DRAWN = 20_000
"""Exchanges that are drawn: so many, that the least p stays below .05 after Holm's correction for
190 comparisons, those of 20 treatments."""


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
    units = differences.shape[1]
    for some in portions(DRAWN, units):
        signs = 2.0 * rng.integers(0, 2, (some, units)) - 1.0
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


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """One model, and all that is known of it.

    Attributes:
        name: what reports call it.
        rank: 1 and one for each model that takes significantly more queries.
        compressed: path of the file.
        sha256: digest of the file.
        size_bytes: size of the file.
        latency_seconds: median time of one input on the device.
        timed_runs: runs that it is the median of.
        deviating_seeds: seeds that deviate themselves.
        deviation_rate: their share of all seeds.
        tied_seeds: deviating seeds on which the labels differ by a tie alone.
        seed_accuracy: on the labelled seeds; null where there are none.
        right: what that is made of.
        labelled: images of the labelled set; null where none was named.
        labelled_accuracy: on them.
        labelled_right: what that is made of.
        labelled_deviation_rate: share of them on which the labels differ.
        labelled_tied: labelled images on which they differ by a tie alone.
        searches: searches from the shared seeds.
        findings: those that ended in a verified finding.
        success_rate: their share.
        mean_queries: restricted mean: a search that found nothing counts with the whole budget.
        area: under the curve of the share of all seeds that have a deviating input within a
            distance, 0 to 1, less is better; null where findings were not shrunk.
        median_strength: strength of all findings, before they were shrunk.
        cut_by_time: searches that the time limit ended before the budget.

    """

    name: str
    rank: CountFromOne
    compressed: str
    sha256: Sha256
    size_bytes: Count
    latency_seconds: Amount
    timed_runs: CountFromOne
    deviating_seeds: Count
    deviation_rate: Estimate
    tied_seeds: Count
    seed_accuracy: Estimate | None
    right: CorrectCounts | None
    labelled: Count | None
    labelled_accuracy: Estimate | None
    labelled_right: CorrectCounts | None
    labelled_deviation_rate: Estimate | None
    labelled_tied: Count | None
    searches: Count
    findings: Count
    success_rate: Estimate
    mean_queries: Estimate
    area: Estimate | None
    median_strength: float | None
    cut_by_time: Count


@dataclass(frozen=True, slots=True)
class Ranking:
    """Models in their order.

    Attributes:
        seeds: number of the seeds.
        shared_seeds: ids of those that deviate on none of the models: what the rank is made from.
        models: those with the most queries first.
        comparisons: comparisons of each with each by queries; their positions are those of
            `models`.
        area_comparisons: the same by area, on all seeds, in the same order; empty where findings
            were not shrunk.

    """

    seeds: int
    shared_seeds: tuple[int, ...]
    models: tuple[Ranked, ...]
    comparisons: tuple[ModelComparison, ...]
    area_comparisons: tuple[ModelComparison, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One model with what was measured and searched."""

    pair: Pair
    measured: ModelMeasurements
    searched: ModelRuns


def rank(candidates: Sequence[Candidate], budget: int) -> Ranking:
    """Rank models by what the same searches from the same seeds needed.

    Args:
        candidates: models to rank, at least two, whose runs had the same seeds.
        budget: the most queries that a search could spend.

    Raises:
        UserError: each seed deviates on one model or another, so that none is left to search from.

    """
    shared = sorted(
        frozenset.intersection(*(candidate.searched.searched for candidate in candidates))
    )
    if not shared:
        raise UserError(
            "each seed deviates already on one of the models or another, so that nothing is left "
            "to compare searches by: give more seeds, or rank fewer models"
        )
    needed = [candidate.searched.needed(shared, budget) for candidate in candidates]
    # From here on in the order of the rank: of equals, the one that was named first.
    order = sorted(range(len(candidates)), key=lambda i: -float(needed[i].mean()))
    values = np.stack([needed[i] for i in order])
    comparisons = compare_all(values)
    means = values.mean(axis=(1, 2)).tolist()
    models = tuple(
        _ranked(candidates[i], place, value, shared)
        for i, place, value in zip(order, places(means, comparisons), values, strict=True)
    )
    rises = [candidates[i].searched.rises for i in order]
    known = [rise for rise in rises if rise is not None]
    by_area = compare_all(np.stack(known)) if len(known) == len(rises) else []
    return Ranking(
        len(candidates[0].searched.seeds), tuple(shared), models, tuple(comparisons), tuple(by_area)
    )


def _ranked(candidate: Candidate, place: int, needed: Values, shared: Sequence[int]) -> Ranked:
    pair, measured, searched = candidate.pair, candidate.measured, candidate.searched
    found = searched.queries[searched.rows(shared)]
    labelled = measured.labelled
    deviating = len(searched.seeds) - len(searched.searched)
    return Ranked(
        name=pair.name,
        rank=place,
        compressed=str(pair.compressed),
        sha256=pair.model_hashes().compressed,
        size_bytes=measured.size_bytes,
        latency_seconds=measured.latency_seconds,
        timed_runs=measured.timed_runs,
        deviating_seeds=deviating,
        deviation_rate=_certain(_share(deviating, len(searched.seeds))),
        tied_seeds=searched.tied,
        seed_accuracy=_accuracy(searched.right),
        right=searched.right,
        labelled=None if labelled is None else labelled.images,
        labelled_accuracy=None if labelled is None else _accuracy(labelled.right),
        labelled_right=None if labelled is None else labelled.right,
        labelled_deviation_rate=(
            None if labelled is None else _share(labelled.deviating, labelled.images)
        ),
        labelled_tied=None if labelled is None else labelled.tied,
        searches=found.size,
        findings=int(np.isfinite(found).sum()),
        success_rate=_certain(success_rate(found)),
        mean_queries=_certain(mean(needed)),
        area=None if searched.rises is None else mean(searched.rises),
        median_strength=median(searched.strengths) if searched.strengths else None,
        cut_by_time=searched.cut_by_time,
    )


def _accuracy(right: CorrectCounts | None) -> Estimate | None:
    return None if right is None else _share(right.compressed, right.inputs)


def _share(hits: int, trials: int) -> Estimate | None:
    """Return a share with its exact interval; None without a trial."""
    return Estimate(hits / trials, *exact_interval(hits, trials)) if trials else None


def _certain(estimate: Estimate | None) -> Estimate:
    """Return an estimate of something that there is data of."""
    if estimate is None:
        raise ValueError("there is no data")
    return estimate
