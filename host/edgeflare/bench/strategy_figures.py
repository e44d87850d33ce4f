"""The figures of a strategy on a pair, over all run seeds: a row of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from statistics import fmean
from statistics import median as middle

import numpy as np

from edgeflare.run.run_document import RunDocument
from edgeflare.statistics.bootstrap import (
    Estimate,
    Values,
    mean,
    median,
    ratio_of_means,
    success_rate,
)


@dataclass(frozen=True, slots=True)
class StrategyFigures:
    """A strategy on a pair; means and medians are over findings, and None where there is none.

    Attributes:
        pair: the pair's name.
        strategy: the strategy's name.
        runs: campaigns that it sums up, one for each run seed.
        searches: seeds searched, over all of them.
        findings: findings, over all of them.
        success: share of the searches that ended in a finding.
        mean_queries: queries for a finding.
        median_queries: queries for a finding.
        mean_device_queries: device queries for a finding.
        mean_host_gradients: gradients for a finding; None where the strategy asks for none.
        mean_translated_evaluations: translated evaluations for a finding, likewise.
        times_baseline: mean queries over the baseline's, over the searches in which both found.
        evaluation_seconds: evaluation time of a finding's own chain, mean.
        wall_seconds: wall time of the campaigns over their findings, failed searches included.
        ties: queries whose labels differ by a tie only, over all campaigns.
        median_l2: distance of a triggering input from its seed, in gray levels.
        median_strength: strength of a finding.

    """

    pair: str
    strategy: str
    runs: int
    searches: int
    findings: int
    success: Estimate | None
    mean_queries: Estimate | None
    median_queries: Estimate | None
    mean_device_queries: Estimate | None
    mean_host_gradients: Estimate | None
    mean_translated_evaluations: Estimate | None
    times_baseline: Estimate | None
    evaluation_seconds: float | None
    wall_seconds: float | None
    ties: int
    median_l2: float | None
    median_strength: float | None


def summarize(
    pair: str, runs: Mapping[str, Sequence[RunDocument]], baseline: str
) -> list[StrategyFigures]:
    """Sum up the campaigns on a pair.

    Args:
        pair: the pair's name.
        runs: finished campaigns by strategy, in the order of their run seeds.
        baseline: the strategy that the others are compared with.

    """
    return [
        _row(pair, strategy, documents, runs.get(baseline, ()))
        for strategy, documents in runs.items()
        if documents
    ]


def queries_needed(documents: Sequence[RunDocument], key: str = "queries") -> Values:
    """Return what each search needed: (seeds, runs), NaN where it found nothing.

    Seeds that deviate themselves are not searched and have no row.
    """
    total = documents[0].totals.seeds
    deviating = {entry.seed_id for run in documents for entry in run.deviating_seeds}
    named = deviating | {entry.seed_id for run in documents for entry in run.findings}
    # Which seeds a document does not name nobody knows, and need not: they have the same row.
    unnamed = islice((number for number in count() if number not in named), total - len(named))
    places = {seed_id: at for at, seed_id in enumerate(sorted({*named, *unnamed} - deviating))}
    values = np.full((len(places), len(documents)), np.nan)
    for column, document in enumerate(documents):
        for finding in document.findings:
            if finding.seed_id in places:
                values[places[finding.seed_id], column] = getattr(finding, key) or 0  # unset: none
    return values


def _row(
    pair: str, strategy: str, documents: Sequence[RunDocument], baseline: Sequence[RunDocument]
) -> StrategyFigures:
    queries = queries_needed(documents)
    findings = [finding for document in documents for finding in document.findings]
    totals = [document.totals for document in documents]
    strengths = [finding.strength for finding in findings if finding.strength is not None]
    return StrategyFigures(
        pair,
        strategy,
        runs=len(documents),
        searches=queries.size,
        findings=len(findings),
        success=success_rate(queries),
        mean_queries=mean(queries),
        median_queries=median(queries),
        mean_device_queries=mean(queries_needed(documents, "device_queries")),
        mean_host_gradients=_mean_inside(documents, "host_gradients"),
        mean_translated_evaluations=_mean_inside(documents, "translated_evaluations"),
        times_baseline=_times_baseline(documents, baseline),
        evaluation_seconds=fmean(finding.seconds for finding in findings) if findings else None,
        wall_seconds=(
            sum(total.wall_seconds for total in totals) / len(findings) if findings else None
        ),
        ties=sum(total.ties for total in totals),
        median_l2=middle(finding.distortion.l2 for finding in findings) if findings else None,
        median_strength=middle(strengths) if strengths else None,
    )


def _mean_inside(documents: Sequence[RunDocument], key: str) -> Estimate | None:
    """Return the mean of what white-box queries cost; None where there were none."""
    asked = any(getattr(document.totals, key) for document in documents)
    return mean(queries_needed(documents, key)) if asked else None


def _times_baseline(
    documents: Sequence[RunDocument], baseline: Sequence[RunDocument]
) -> Estimate | None:
    """Compare the run seeds that both have run."""
    known = {document.rng_seed: document for document in baseline}
    shared = [document for document in documents if document.rng_seed in known]
    if not shared:
        return None
    theirs = [known[document.rng_seed] for document in shared]
    queries = queries_needed([*shared, *theirs])
    return ratio_of_means(queries[:, : len(shared)], queries[:, len(shared) :])
