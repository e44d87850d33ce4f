"""How often the compared arms deviate on inputs as they are: the seeds, and held-out ones.

A search shows what can be found, these figures how often it happens by itself; so they stand above
all that was mutated.
"""

from __future__ import annotations

from itertools import compress

from edgeflare.core.arm import Arm
from edgeflare.core.truths import Truths
from edgeflare.run.exact_interval import exact_interval
from edgeflare.run.harm import count_harms, harm_or_why_not, right_by_arm
from edgeflare.run.journal import HELD_OUT_KEY, Journal
from edgeflare.run.journal_rows import Role
from edgeflare.run.run_document import DeviationRate, Unmutated
from edgeflare.run.run_header import RunHeader
from edgeflare.run.stored_answers import from_rows
from edgeflare.run.systematic.differences import systematic_differences
from edgeflare.run.systematic.figures import SystematicDifferences
from edgeflare.run.without_reset import noted_without_reset


def unmutated(journal: Journal, header: RunHeader) -> Unmutated:
    """Return the figures of the seeds and, where there are some, of the held-out inputs."""
    held_out = journal.about().get(HELD_OUT_KEY)
    return Unmutated(
        seeds=_rate(journal, header, "seed", header.truths),
        test=_rate(
            journal,
            header,
            "test",
            Truths.from_json(header.arms[Arm.TWIN], held_out),
            held_out["path"],
        )
        if held_out
        else None,
        systematic=_systematic(journal, header),
        without_reset=noted_without_reset(journal.about()),
    )


def _systematic(journal: Journal, header: RunHeader) -> SystematicDifferences | None:
    rows, labels = [rows[0] for rows in journal.answers("seed").values()], header.labels
    return systematic_differences(
        header.reading,
        header.plan.goal.compared,
        from_rows(header.reading, rows),
        header.classes,
        None if labels is None else [labels[header.place(row.seed_id)] for row in rows],
    )


def _rate(
    journal: Journal,
    header: RunHeader,
    role: Role,
    truths: Truths,
    path: str | None = None,
) -> DeviationRate:
    goal = header.plan.goal.unmutated
    rows = [rows[0] for rows in journal.answers(role).values()]
    outcomes = [one.outcome for one in from_rows(header.reading, rows)]
    known = [truths[row.seed_id] for row in rows]
    deviating = [goal.met(one) is not None for one in outcomes]
    by_tie = [
        one and goal.tied_deviation(outcome)
        for one, outcome in zip(deviating, outcomes, strict=True)
    ]
    harms = [harm_or_why_not(goal, *one) for one in zip(outcomes, known, strict=True)]
    labelled, right = right_by_arm(outcomes, known)
    inputs, count = len(rows), sum(deviating)
    low, high = exact_interval(count, inputs) if inputs else (0.0, 1.0)
    return DeviationRate(
        path=path,
        images=inputs,
        deviating=count,
        by_tie=sum(by_tie),
        tied=sum(any(one[arm].tied for arm in goal.compared) for one in outcomes),
        rate=count / max(1, inputs),
        low=low,
        high=high,
        harm=count_harms(compress(harms, deviating)) if truths.given else None,
        harm_by_tie=count_harms(compress(harms, by_tie)) if truths.given else None,
        labelled=labelled,
        right={arm.value: n for arm, n in right.items()} if labelled else None,
    )
