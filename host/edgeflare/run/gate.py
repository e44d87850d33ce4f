"""Whether what a run found is more than was allowed: what its exit code says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from edgeflare.core.answer import FAILURES
from edgeflare.core.seeds import is_label
from edgeflare.errors import UserError
from edgeflare.run.harm import is_harmful
from edgeflare.run.nearness import counts
from edgeflare.run.run_document import Finding, RunDocument

FailOn = Literal["any", "harmful", "kernel", "none"]


def deviation_rate(document: RunDocument, fail_on: FailOn) -> float:
    """Return the share of seeds with a deviation that counts: in searching, or the seed itself.

    With "harmful" only those count on which the host's arm was right, the device failed, or nobody
    knows who was right; with "kernel" those whose cause is the kernels, or on which the device
    failed; with "none" none does. Deviations farther than `--within` or weaker than
    `--min-strength` count for nothing; crashes, hangs and invalid outputs always count.
    """
    return len(counting(document, fail_on)) / max(1, document.totals.seeds)


def counting(document: RunDocument, fail_on: FailOn) -> list[Finding]:
    """Return the entries that count: deviating seeds, then findings."""
    chosen = _COUNTS[fail_on]
    return [entry for entry in document.deviations if counts(entry) and chosen(entry)]


def _of_the_device(entry: Finding) -> bool:
    failed = entry.kind in FAILURES and entry.labels.get("device") is None
    return failed or entry.cause == "kernel"


_COUNTS: Mapping[FailOn, Callable[[Finding], bool]] = {
    "any": lambda _entry: True,
    "harmful": is_harmful,
    "kernel": _of_the_device,
    "none": lambda _entry: False,
}


def require_labels(labels: Sequence[int] | None, classes: int) -> None:
    """Refuse to count what is harmful where no seed has a label.

    Args:
        labels: of the seeds, or None.
        classes: that the models tell apart; other labels mean unlabelled. 0 where they cannot be
            counted.

    Raises:
        UserError: there is none, or the task knows no labels.

    """
    if not classes:
        raise UserError(
            "--fail-on harmful needs to know who is right, and the task of this pair has no"
            " classes that labels could name: count with --fail-on any"
        )
    if labels is None or not any(is_label(label, classes) for label in labels):
        raise UserError(
            f"--fail-on harmful needs to know who is right, but no seed has a label from 0 to"
            f" {classes - 1}: give seeds in an .npz with labels, or count with --fail-on any"
        )


def searched_nothing(document: RunDocument) -> bool:
    """Whether a run was stopped before the search from any seed had ended, so it shows nothing."""
    return bool(document.stopped_by) and not document.totals.searched


def exceeds(document: RunDocument, fail_on: FailOn, allowed_rate: float) -> bool:
    """Whether a run found more than was allowed."""
    return deviation_rate(document, fail_on) > allowed_rate
