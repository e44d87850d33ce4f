"""The exit code of a search that has ended, and why it is not 0."""

from __future__ import annotations

from edgeflare.cli.console import Console
from edgeflare.cli.interruptible import INTERRUPTED
from edgeflare.cli.run_options import FailOn
from edgeflare.core.interrupt import INTERRUPTED_BY
from edgeflare.errors import UserError
from edgeflare.run.gate import deviation_rate, exceeds, searched_nothing
from edgeflare.run.run_document import RunDocument


def search_exit_code(
    document: RunDocument, fail_on: FailOn, allow: float, beginning: str = ""
) -> int:
    """Return the exit code of a run that has ended, and say why where something deviates.

    Args:
        document: of the run.
        fail_on: which deviations count.
        allow: share of the seeds that may have one.
        beginning: what the line begins with, where it is one of several runs.

    Raises:
        UserError: the search ended before anything was searched, so that nothing can pass.

    """
    if document.stopped_by in INTERRUPTED_BY:
        return INTERRUPTED
    if exceeds(document, fail_on.value, allow):
        rate = deviation_rate(document, fail_on.value)
        Console().print(
            f"{beginning}exit code 1: {rate:.1%} of the seeds deviate or lead to it, "
            f"{allow:.1%} allowed (--allow, --fail-on, --within, --min-strength)"
        )
        return 1
    ended_early = document.stopped_by == "total-time"
    if ended_early and fail_on is not FailOn.NONE and searched_nothing(document):
        raise UserError(
            f"--total-time {document.plan['total_time']:g} ended before the search from any of"
            f" {document.totals.seeds} seeds did, so nothing can pass: give it more time,"
            " or fewer seeds with --limit"
        )
    return 0
