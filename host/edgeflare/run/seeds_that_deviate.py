"""The seeds of a run that deviate themselves, by the answers in its journal."""

from __future__ import annotations

from edgeflare.run.journal import Journal
from edgeflare.run.run_header import RunHeader
from edgeflare.run.stored_answers import from_rows


def seeds_that_deviate(journal: Journal, header: RunHeader) -> list[int]:
    """Return the ids of the seeds that deviate when they were evaluated first.

    Args:
        journal: of the run.
        header: its header.

    """
    rows = [rows[0] for rows in journal.answers("seed").values()]
    return [
        row.seed_id
        for row, one in zip(rows, from_rows(header.reading, rows), strict=True)
        if header.plan.goal.unmutated.met(one.outcome)
    ]
