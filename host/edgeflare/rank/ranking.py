"""The rank: models in the order of how many queries it takes to make them deviate.

A further measure says how near to the seeds they do; it decides no place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import msgspec
import numpy as np

from edgeflare.errors import UserError
from edgeflare.models.pair import Pair
from edgeflare.rank.model_comparison import ModelComparison, compare_all, places
from edgeflare.rank.model_measurements import ModelMeasurements
from edgeflare.rank.model_runs import CorrectCounts, ModelRuns
from edgeflare.record.json_types import Amount, Count, CountFromOne, Sha256
from edgeflare.statistics.binomial import exact_interval
from edgeflare.statistics.bootstrap import Estimate, Values, mean, success_rate


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """One model, and all that is known of it.

    Attributes:
        name: what reports call it.
        place: 1 and one for each model that takes significantly more queries.
        compressed: path of the file.
        sha256: digest of the file.
        size_bytes: size of the file.
        latency_ms: median time of one input on the device.
        timed_runs: runs that it is the median of.
        deviating_seeds: seeds that deviate themselves.
        deviation_rate: their share of all seeds.
        tied_seeds: deviating seeds on which the labels differ by a tie alone.
        seed_accuracy: on the labelled seeds; None where there are none.
        right: what that is made of.
        labelled: images of the labelled set; None where none was named.
        labelled_accuracy: on them.
        labelled_right: what that is made of.
        labelled_deviation_rate: share of them on which the labels differ.
        labelled_tied: labelled images on which they differ by a tie alone.
        searches: searches from the shared seeds.
        findings: those that ended in a verified finding.
        success: their share.
        mean_queries: restricted mean: a search that found nothing counts with the whole budget.
        area: under the curve of the share of all seeds that have a deviating input within a
            distance, 0 to 1, less is better; None where findings were not shrunk.
        median_strength: strength of all findings, before they were shrunk.
        cut_by_time: searches that the time limit ended before the budget.

    """

    name: str
    place: CountFromOne
    compressed: str
    sha256: Sha256
    size_bytes: Count
    latency_ms: Amount
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
    success: Estimate
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
        place=place,
        compressed=str(pair.compressed),
        sha256=pair.model_hashes().compressed,
        size_bytes=measured.size_bytes,
        latency_ms=measured.latency_ms,
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
        success=_success(found),
        mean_queries=_certain(mean(needed)),
        area=None if searched.rises is None else mean(searched.rises),
        median_strength=median(searched.strengths) if searched.strengths else None,
        cut_by_time=searched.cut_by_time,
    )


def _accuracy(right: CorrectCounts | None) -> Estimate | None:
    return None if right is None else _share(right.compressed, right.images)


def _share(hits: int, trials: int) -> Estimate | None:
    """Return a share with its exact interval; None without a trial."""
    return Estimate(hits / trials, *exact_interval(hits, trials)) if trials else None


def _success(found: Values) -> Estimate:
    """Return the share of searches with a finding; of none or all, what so many seeds can tell."""
    finite = np.isfinite(found)
    if finite.any() and not finite.all():
        return _certain(success_rate(found))
    seeds = len(found)
    return _certain(_share(seeds if finite.all() else 0, seeds))


def _certain(estimate: Estimate | None) -> Estimate:
    """Return an estimate of something that there is data of."""
    if estimate is None:
        raise ValueError("there is no data")
    return estimate
