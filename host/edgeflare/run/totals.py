"""What a whole run spent and found: the `totals` of its document, without duplicates and harm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import fmean, median
from typing import Any

from edgeflare.core.query import Arm
from edgeflare.run.finding_outcomes import SortedFindings
from edgeflare.run.harm import count_harms, harm_of_entry
from edgeflare.run.journal_rows import (
    AnswerRow,
    ChainRow,
    RefinementRow,
    Role,
    white_box_spent,
)
from edgeflare.run.plan import Plan
from edgeflare.run.run_document import Duplicates, HarmTotals, Totals
from edgeflare.run.run_header import RunHeader
from edgeflare.run.run_journal import RunJournal

OVERHEAD: tuple[Role, ...] = ("seed", "test", "verify", "canary")
"""Roles of inputs that are evaluated outside of the search."""


def totals_of(
    journal: RunJournal, header: RunHeader, found: SortedFindings, duplicates: Duplicates
) -> Totals:
    """Return the figures of a run.

    Args:
        journal: journal of the run.
        header: header of the run.
        found: what it stored.
        duplicates: how much of that is the same.

    """
    chains = journal.chains()
    spent, refined = list(chains.values()), list(journal.refinements().values())
    overhead = [row for role in OVERHEAD for row in _answers(journal, role)]
    steps, refining = _answers(journal, "step"), _answers(journal, "refine")
    led_to_findings = [chains[finding.seed_id] for finding in found.findings]
    queries = [row.queries for row in led_to_findings]
    device_queries = [row.device_queries for row in led_to_findings]
    seeds = int(journal.about()["seeds"])
    times = journal.times()
    surveyed, asked = journal.survey.host_count(), journal.survey.device_count()
    return Totals(
        seeds=seeds,
        deviating_seeds=len(found.deviating_seeds),
        searched=len(chains),
        findings=len(queries),
        success_rate=len(queries) / max(1, seeds - len(found.deviating_seeds)),
        mean_queries=_mean(queries),
        median_queries=median(queries) if queries else None,
        queries=sum(row.queries for row in spent) + _mutated(steps),
        mean_device_queries=_mean(device_queries),
        device_queries=sum(row.device_queries for row in spent) + _by_device(steps),
        overhead_queries=len(overhead)
        + sum(row.queries for row in refined)
        + _mutated(refining)
        + surveyed,
        overhead_device_queries=_by_device([*overhead, *refining])
        + sum(row.device_queries for row in refined)
        + asked,
        host_evaluations=_host_evaluations(
            header, [*spent, *refined], [*overhead, *steps, *refining], (surveyed, asked)
        ),
        **white_box_spent(spent),
        setup_seconds=times.setup,
        wall_seconds=times.wall,
        refine_seconds=times.refine,
        **_refining(header.plan, refined, refining, times.refine),
        verify_seconds=times.verify,
        mean_seconds=_mean([row.seconds for row in led_to_findings]),
        device_busy_seconds=times.device_busy,
        ties=sum(row.ties for row in spent),
        flaky=len(found.flaky),
        harm=HarmTotals(
            deviating_seeds=count_harms(map(harm_of_entry, found.deviating_seeds)),
            findings=count_harms(map(harm_of_entry, found.findings)),
        )
        if header.truths.given
        else None,
        duplicates=duplicates,
    )


def _refining(
    plan: Plan, ended: Sequence[RefinementRow], rows: Sequence[AnswerRow], seconds: float
) -> Mapping[str, Any]:
    """Return what refining cost, as the document has it; nothing where none was refined.

    Beside its two steps it has a query for each finding, which shows whether it still is one, and
    refinements that have not ended. They are under way together, so the time is shared out by what
    their evaluations took.

    Args:
        plan: what was asked.
        ended: refinements that have ended, whose answers are not kept.
        rows: the answers of all others.
        seconds: seconds that refining took.

    """
    if not ended and not rows:
        return {}
    evaluated = sum(row.seconds for row in ended) + sum(row.seconds for row in rows)
    second = seconds / evaluated if evaluated else 0.0
    stronger = {
        "strengthen_queries": sum(row.strengthen_queries for row in ended),
        "strengthen_device_queries": sum(row.strengthen_device_queries for row in ended),
        "strengthen_seconds": second * sum(row.strengthen_seconds for row in ended),
    }
    queries, device_queries, _ = stronger.values()
    nearer = {
        "shrink_queries": sum(row.queries - 1 for row in ended) - queries,
        "shrink_device_queries": sum(row.device_queries - 1 for row in ended) - device_queries,
        "shrink_seconds": second * sum(row.seconds - row.strengthen_seconds for row in ended),
    }
    return {
        "refined": len(ended),
        "refine_queries": sum(row.queries for row in ended) + _mutated(rows),
        "refine_device_queries": sum(row.device_queries for row in ended) + _by_device(rows),
        **white_box_spent(ended, "refine_"),
        **(stronger if plan.strengthen and evaluated else {}),
        **(nearer if plan.shrink and evaluated else {}),
    }


def _answers(journal: RunJournal, role: Role) -> list[AnswerRow]:
    return list(chain.from_iterable(journal.answers(role).values()))


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _mutated(rows: Sequence[AnswerRow]) -> int:
    """Return how many inputs were evaluated; one that the device was asked later counts once."""
    return sum(not row.again for row in rows)


def _by_device(rows: Sequence[AnswerRow]) -> int:
    return sum(row.device is not None for row in rows)


def _host_evaluations(
    header: RunHeader,
    ended: Sequence[ChainRow | RefinementRow],
    rows: Sequence[AnswerRow],
    surveyed: tuple[int, int],
) -> Mapping[str, int]:
    """Return how often each model of the host was invoked.

    Args:
        header: names the kernels.
        ended: searches and refinements that have ended, whose answers are not kept.
        rows: all other answers.
        surveyed: items of a survey that the host answered, and that all arms answered again.

    """
    items, by_arms = surveyed[0], sum(surveyed)
    members = items + sum(row.member_evaluations for row in ended)
    members += sum(row.members is not None for row in rows)
    return {
        "original": sum(row.original_evaluations for row in ended)
        + sum(row.original is not None for row in rows)
        + (by_arms if Arm.ORIGINAL in header.arms else 0),
        f"twin-{header.plan.ensemble[0]}": sum(row.twin_evaluations for row in ended)
        + sum(row.twin is not None for row in rows)
        + by_arms,
        **{f"twin-{member}": members for member in header.reading.members},
    }
