"""Whether a run that found nothing compared arms that differ at all."""

from __future__ import annotations

from collections.abc import Sequence

from edgeflare.core.arm import Arm
from edgeflare.core.goal import Find
from edgeflare.run.journal import Journal
from edgeflare.run.journal_rows import AnswerRow
from edgeflare.run.run_header import RunHeader


def equal_arms(journal: Journal, header: RunHeader) -> list[str]:
    """Return a line about arms whose raw outputs were equal on all seeds, if nothing was found.

    Arms that differ may still give equal outputs on seeds, where a saturated softmax hides what is
    below; so it is no matter as long as something is found.
    """
    rows = [rows[0] for rows in journal.answers("seed").values()]
    if len(rows) < int(journal.about()["seeds"]) or not journal.chains() or journal.triggers():
        return []
    first, second = header.plan.goal.compared
    if _equal(rows, first, second):
        return [
            f"nothing was found, and {first} and {second} gave equal outputs on all "
            f"{len(rows)} seeds: is it the same model on the same kernels?"
        ]
    if header.plan.goal.find is not Find.KERNEL and _equal(rows, Arm.ORIGINAL, Arm.TWIN):
        return [
            f"nothing was found, and original and twin gave equal outputs on all {len(rows)} "
            "seeds: if it is the same model, only kernels can differ, which --find kernel looks for"
        ]
    return []


def _equal(rows: Sequence[AnswerRow], first: Arm, second: Arm) -> bool:
    return all(row.raw(first) == row.raw(second) for row in rows)
