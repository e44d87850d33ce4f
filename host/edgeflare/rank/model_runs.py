"""The runs of one model: which seeds deviate, and how many queries each search needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.query import Arm, Outcome
from edgeflare.core.truths import Truths, is_right
from edgeflare.errors import UserError
from edgeflare.record.json_types import Count
from edgeflare.run.answer_rows import from_rows
from edgeflare.run.load_document import load_document
from edgeflare.run.nearness import curve_of, nearness_db, rise
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import Finding, RunDocument
from edgeflare.run.run_header import RunHeader
from edgeflare.run.run_journal import RunJournal
from edgeflare.run.seed_ids import SeedIds


@dataclass(frozen=True, slots=True)
class CorrectCounts:
    """How often both models were right on labelled images.

    Attributes:
        inputs: those with a label or a target that both answered.
        original: those on which the original was right.
        compressed: those on which the compressed model, on its device, was right.

    """

    inputs: Count
    original: Count
    compressed: Count


@dataclass(frozen=True, slots=True)
class ModelRuns:
    """The finished runs of one model, one for each run seed.

    Attributes:
        seeds: ids of the seeds.
        searched: ids of those that were searched from in every run; the others deviate themselves.
        tied: number of the seeds that deviate by a tie alone.
        right: on the labelled seeds; None where there are none.
        queries: (seeds, runs), of searches that ended in a verified finding; NaN elsewhere.
        seconds: (seeds, runs), evaluation time of all searches; NaN for seeds that deviate.
        strengths: strengths of the findings as the search found them, not as shrinking left them.
        rises: (seeds, runs), share of the curve of nearness over which a seed counts: 1 where it
            deviates itself, 0 where nothing was found; None where findings were not shrunk.
        cut_by_time: searches that the time limit ended, not the budget.

    """

    seeds: SeedIds
    searched: frozenset[int]
    tied: int
    right: CorrectCounts | None
    queries: NDArray[np.float64]
    seconds: NDArray[np.float64]
    strengths: tuple[float, ...]
    rises: NDArray[np.float64] | None
    cut_by_time: int

    def rows(self, seed_ids: Sequence[int]) -> list[int]:
        """Return the rows of some seeds."""
        return [*map(self.seeds.place, seed_ids)]

    def needed(self, seed_ids: Sequence[int], budget: int) -> NDArray[np.float64]:
        """Return the queries of the searches from some seeds, the budget where it was not enough.

        Returns:
            (seeds named, runs).

        """
        queries = self.queries[self.rows(seed_ids)]
        return np.where(np.isfinite(queries), queries, float(budget))


def read_runs(folders: Sequence[Path]) -> ModelRuns:
    """Read the finished runs of one model, at least one.

    Raises:
        UserError: there is no run in one of the folders, or the images of its findings are gone.

    """
    found = [_read(folder) for folder in folders]
    first = found[0]
    rises = [run.rises for run in found if run.rises is not None]
    return ModelRuns(
        seeds=first.seeds,
        searched=frozenset.intersection(*(run.searched for run in found)),
        tied=first.tied,
        right=first.right,
        queries=np.concatenate([run.queries for run in found], axis=1),
        seconds=np.concatenate([run.seconds for run in found], axis=1),
        strengths=tuple(strength for run in found for strength in run.strengths),
        rises=np.concatenate(rises, axis=1) if len(rises) == len(found) else None,
        cut_by_time=sum(run.cut_by_time for run in found),
    )


def count_right(outcomes: Mapping[int, Outcome], truths: Truths) -> CorrectCounts | None:
    """Count where the models are right; None where that is known of nothing.

    Args:
        outcomes: outcomes by the id of the seed.
        truths: truths of the seeds.

    """
    answered = [
        (is_right(outcome[Arm.ORIGINAL], truth), is_right(outcome[Arm.DEVICE], truth))
        for seed_id, outcome in outcomes.items()
        if (truth := truths[seed_id]) is not None
        and None not in (outcome[Arm.ORIGINAL].decision, outcome[Arm.DEVICE].decision)
    ]
    if not answered:
        return None
    original, compressed = map(sum, zip(*answered, strict=True))
    return CorrectCounts(len(answered), original, compressed)


def _read(run: Path) -> ModelRuns:
    directory = RunDirectory(run)
    document = load_document(directory)
    with closing(RunJournal.open(directory.journal)) as journal:
        header = RunHeader.from_json(journal.about())
        chains = journal.chains()
        answered = dict(sorted(journal.answers("seed").items()))
        rows = [rows[0] for rows in answered.values()]
    outcomes = [query.outcome for query in from_rows(header.reading, rows)]
    findings = document.findings
    strengths = map(_strength, findings)
    seeds = SeedIds.of(answered)
    queries, seconds = np.full((2, len(outcomes), 1), np.nan)
    for finding in findings:
        queries[seeds.place(finding.seed_id), 0] = finding.queries
    for seed_id, chain in chains.items():
        seconds[seeds.place(seed_id), 0] = chain.seconds
    return ModelRuns(
        seeds=seeds,
        searched=frozenset(chains),
        tied=sum(map(header.plan.goal.tied_deviation, outcomes)),
        right=count_right(dict(zip(answered, outcomes, strict=True)), header.truths),
        queries=queries,
        seconds=seconds,
        strengths=tuple(strength for strength in strengths if strength is not None),
        rises=_rises(run, document, seeds) if header.plan.shrink else None,
        cut_by_time=sum(chain.ended == "max-time" for chain in chains.values()),
    )


def _strength(finding: Finding) -> float | None:
    """Return the strength that the search found, before refinement."""
    before = None if finding.refined is None else finding.refined.strength_before
    strength = finding.strength
    return strength if before is None else before


def _rises(run: Path, document: RunDocument, seeds: SeedIds) -> NDArray[np.float64]:
    """Return how each seed counts in the curve of nearness of one run: (seeds, 1)."""
    values = np.zeros((len(seeds), 1))
    for entry in document.deviations:
        distance = nearness_db(entry)
        if distance is None:
            raise UserError(
                f"{run} does not say how near its findings are: remove it, and the same command"
                " with --resume searches again"
            )
        values[seeds.place(entry.seed_id), 0] = rise(distance, curve_of(document))
    return values
