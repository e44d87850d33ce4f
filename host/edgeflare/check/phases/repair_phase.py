"""Whether a repair takes a pair whose file is to blame, and what it gives."""

from __future__ import annotations

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.check.answers import seconds_per_input
from edgeflare.check.causes.cause import OF_THE_FILE
from edgeflare.check.phases.check_record import CheckRecord


def why_not_mended(record: CheckRecord, opened: OpenedPair) -> str | None:
    """Return why a repair does not take a pair whose file is to blame, empty where it does.

    None where the file is not to blame.
    """
    cause = record.document().cause
    if cause is None or cause.rule not in OF_THE_FILE:
        return None
    from edgeflare.repair.repair_requirements import why_not_repaired  # noqa: PLC0415 - a room

    return why_not_repaired(record.check.pair, len(opened.seeds)) or ""


def mend(record: CheckRecord, opened: OpenedPair, why_not: str | None) -> None:
    """Note whether a repair takes the pair where the file is to blame; if asked for, try it.

    Args:
        record: what the check has measured so far.
        opened: the pair, on the first device.
        why_not: what `why_not_mended` returned.

    """
    if why_not is None:
        return
    record.update(mendable=not why_not)
    if why_not:
        record.miss("mend", why_not)
    record.keep()
    known = record.figures.mend is not None and not record.was_cut("mend")
    if record.check.request.mend and not (why_not or known):
        _repair(record, opened)


def _repair(record: CheckRecord, opened: OpenedPair) -> None:
    """Try candidates of a repair in what is left of the budget."""
    from edgeflare.check.mend import (  # noqa: PLC0415 - the repair's room
        FOLDER,
        JUDGING,
        PREPARING,
        mend_figures,
    )

    if record.interrupt.asked():
        record.cut("mend")
        return
    request, profile = record.check.request, opened.devices[0].profile
    each = seconds_per_input(opened)  # now: other load may have come or gone
    until = request.budget - each * JUDGING
    stopped = record.begin("mend", until)
    if stopped() or record.seconds_left(until) < each * PREPARING:
        record.cut("mend")
        return
    record.store.keep_folder(FOLDER)
    with record.measuring("mend"):
        found = mend_figures(
            record.check.pair,
            profile,
            record.store.path,
            request.limit,
            stopped,
            record.observer.worked,
            inputs=request.inputs,
        )
        record.update(mend=found or record.figures.mend)
