"""How often the compared arms deviate on inputs as they are: the seeds, and held-out ones.

A search shows what can be found, these figures how often it happens by itself; so they stand above
all that was mutated.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgeflare.run.exact_interval import exact_interval
from edgeflare.run.harm import count_harms, harm_of
from edgeflare.run.journal import HELD_OUT_KEY, Journal
from edgeflare.run.journal_rows import Role
from edgeflare.run.run_document import DeviationRate, Unmutated
from edgeflare.run.run_header import RunHeader
from edgeflare.run.stored_answers import from_rows


def unmutated(journal: Journal, header: RunHeader) -> Unmutated:
    """Return the figures of the seeds and, where there are some, of the held-out inputs."""
    held_out = journal.about().get(HELD_OUT_KEY)
    return Unmutated(
        seeds=_rate(journal, header, "seed", header.labels),
        test=_rate(journal, header, "test", held_out["labels"], held_out["path"])
        if held_out
        else None,
    )


def _rate(
    journal: Journal,
    header: RunHeader,
    role: Role,
    labels: Sequence[int] | None,
    path: str | None = None,
) -> DeviationRate:
    goal = header.plan.goal
    rows = [rows[0] for rows in journal.answers(role).values()]
    harms = [
        harm_of(goal, one.outcome, None if labels is None else labels[row.seed_id])
        for row, one in zip(rows, from_rows(header.reading, rows), strict=True)
        if goal.met(one.outcome)
    ]
    inputs, deviating = len(rows), len(harms)
    low, high = exact_interval(deviating, inputs) if inputs else (0.0, 1.0)
    return DeviationRate(
        path=path,
        images=inputs,
        deviating=deviating,
        rate=deviating / max(1, inputs),
        low=low,
        high=high,
        harm=None if labels is None else count_harms(harms),
    )
