"""Whether what a run found is more than was allowed: what its exit code says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from edgeflare.core.answer import FAILURES
from edgeflare.core.truths import Truths
from edgeflare.run.harm import HARMFUL, is_harmful
from edgeflare.run.nearness import counts
from edgeflare.run.run_document import DeviationRate, Finding, RunDocument
from edgeflare.run.run_warnings import MOST_TIED
from edgeflare.statistics.binomial import sign_test

SURELY: Final = 0.05
"""Probability of so much more harm than help by chance, below which it is none."""


@dataclass(frozen=True, slots=True)
class FailOn:
    """Which deviations make a run fail, as `--fail-on` says.

    Attributes:
        counts: whether an entry of a run is one.
        words: text for `--help`; empty where the name says it.
        needs_truth: whether it has to be known who is right.
        of_replays: whether a replay can be asked for it.
        of_tests: whether `assert_decides_alike` can.

    """

    counts: Callable[[Finding], bool]
    words: str = ""
    needs_truth: bool = False
    of_replays: bool = False
    of_tests: bool = True


def _of_the_device(entry: Finding) -> bool:
    labels = entry.labels
    failed = entry.kind in FAILURES and labels.get("device") is None
    # What twin and device share, such as a NaN of the file itself, is not by kernels.
    shared = "twin" in labels and labels["twin"] is None
    return (failed and not shared) or entry.cause == "kernel"


FAIL_ON: Final[Mapping[str, FailOn]] = {
    "any": FailOn(lambda _entry: True, of_replays=True),
    "harmful": FailOn(
        is_harmful,
        "those on which the original (with --find kernel, the twin) is right by the seed's label,"
        " those without a label, and failures of the device",
        needs_truth=True,
        of_replays=True,
    ),
    "kernel": FailOn(_of_the_device),
    "none": FailOn(lambda _entry: False, of_tests=False),
}
"""Deviations that `--fail-on` can name, by name; adding one is a line here."""


def require_truth(fail_on: str, truths: Truths) -> None:
    """Refuse to count by who is right where that is not known.

    Args:
        fail_on: one of `FAIL_ON`.
        truths: what is right for the seeds.

    """
    if FAIL_ON[fail_on].needs_truth:
        truths.require(f"--fail-on {fail_on} needs to know who is right")


def deviation_rate(document: RunDocument, fail_on: str) -> float:
    """Return the share of seeds with a deviation that counts: in searching, or the seed itself.

    Deviations farther than `--within` or weaker than `--min-strength` count for nothing; crashes,
    hangs and invalid outputs always count. Seeds that deviate by a tie count as `ties_count` says.
    """
    return len(counting(document, fail_on)) / max(1, document.totals.seeds)


def counting(document: RunDocument, fail_on: str) -> list[Finding]:
    """Return the entries that count: deviating seeds, then findings."""
    chosen = FAIL_ON[fail_on]
    return [entry for entry in counted(document) if chosen.counts(entry)]


def counted(document: RunDocument) -> list[Finding]:
    """Return the deviating seeds and findings that count, whatever their cause and harm."""
    seeds = document.deviating_seeds
    if not ties_count(document):
        seeds = tuple(entry for entry in seeds if not entry.by_tie)
    return [entry for entry in (*seeds, *document.findings) if counts(entry)]


def may_count_yet(document: RunDocument) -> list[Finding]:
    """Return the findings that do not count, and may come to it: the run ended before refining."""
    if not document.stopped_by:
        return []
    return [entry for entry in document.findings if not counts(entry) and entry.refined is None]


def ties_count(document: RunDocument) -> bool:
    """Whether seeds that deviate by a tie count: where ties do harm, or are no exception.

    One tie in a hundred inputs is decided either way by chance. It is a fault where those inputs
    are harmed more often than helped, by a sign test, or where more than a tenth of all seeds tie,
    as those of a device whose answers are all equal do.
    """
    if document.unmutated is None:
        return True
    seeds = document.unmutated.seeds
    helped, harmed, p = tie_harm(seeds)
    return (seeds.tied or 0) > MOST_TIED * seeds.inputs or (harmed > helped and p < SURELY)


def tie_harm(figures: DeviationRate) -> tuple[int, int, float]:
    """Return how many inputs a change by a tie helped and harmed, and p of the sign test."""
    harm = figures.harm_by_tie or {}
    helped, harmed = harm.get("device-right", 0), sum(harm.get(kind, 0) for kind in HARMFUL)
    return helped, harmed, sign_test(helped, harmed)


def searched_nothing(document: RunDocument) -> bool:
    """Whether a run was stopped before the search from any seed had ended, so it shows nothing."""
    return bool(document.stopped_by) and not document.totals.searched


def exceeds(document: RunDocument, fail_on: str, allowed_rate: float) -> bool:
    """Whether a run found more than was allowed."""
    return deviation_rate(document, fail_on) > allowed_rate
