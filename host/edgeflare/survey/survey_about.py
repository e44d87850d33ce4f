"""What a survey's document says beside its rates: what was asked, of what, and what that took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from edgeflare.core.arm import Arm
from edgeflare.core.task import LEAST_SEEDS
from edgeflare.run.exact_interval import exact_interval
from edgeflare.run.journal import Journal
from edgeflare.run.run_document import Finding, RunDocument
from edgeflare.run.seed_warnings import MOST_TIED
from edgeflare.run.survey_rows import DeviceRow, HostRow
from edgeflare.survey.items.survey_facts import UNCHANGED
from edgeflare.survey.rare.rare_phase import RARE_KEY
from edgeflare.survey.record.survey_plan import ENDED_KEY, SurveyPlan, noted_plan


def about_survey(journal: Journal, document: RunDocument) -> dict[str, Any]:
    """Return what is said of a survey beside its rates and gates, as plain JSON values.

    Args:
        journal: of the survey.
        document: of its run.

    """
    plan, noted, totals = noted_plan(journal), journal.about(), document.totals
    asked = journal.survey.device_count()
    host = journal.survey.host()
    signs = signs_in_answers(host, journal.survey.device())
    if noted.get("labels") is not None and Arm.ORIGINAL.value in noted["arms"]:
        signs += signs_of_chance(host, noted["labels"])
    return {
        "pair": dict(document.pair),
        "devices": [
            {"name": one.name, "provenance": dict(one.provenance)} for one in document.devices
        ],
        "host": dict(document.host),
        "classes": list(document.classes),
        "plan": _plan(plan, document),
        "stopped_by": document.stopped_by or noted.get(ENDED_KEY),
        "seconds": totals.setup_seconds + totals.wall_seconds + totals.verify_seconds,
        "device_queries": asked,
        "overhead_device_queries": totals.overhead_device_queries - asked,
        "findings": [_finding(one) for one in document.deviations],
        "rare": noted.get(RARE_KEY),
        "warnings": [*document.warnings, *signs, *_looks(plan, asked)],
    }


def signs_in_answers(host: Sequence[HostRow], device: Sequence[DeviceRow]) -> list[str]:
    """Return the signs that the device does not answer as a trained model does, a line each.

    Args:
        host: the rows of all items.
        device: those of the items that the device was asked about; its failures say nothing here.

    """
    answered = [row for row in device if not row.failed]
    if len(answered) < LEAST_SEEDS:
        return []
    twin = {row.item: row.twin_decision for row in host}
    decided = {row.device_decision for row in answered}
    lines, tied = [], sum(row.tied for row in answered)
    if len(decided) == 1 and len({twin[row.item] for row in answered}) > 1:
        lines.append(
            f"the device decides the same on all {len(answered):,} items that it answered, and its"
            " twin does not: look at the device's kernels"
        )
    if tied > MOST_TIED * len(answered):
        lines.append(
            f"the device's decision hangs on a tie of equal outputs on {tied:,} of the"
            f" {len(answered):,} items that it answered: which of them wins says nothing"
        )
    return lines


def signs_of_chance(host: Sequence[HostRow], labels: Sequence[int]) -> list[str]:
    """Return a line where the original is no better than the most frequent label for all would be.

    Args:
        host: the rows of all items.
        labels: of the inputs.

    """
    known = [row for row in host if row.known]
    if len(known) < LEAST_SEEDS:
        return []
    ((_, most),) = Counter(labels[row.item % len(labels)] for row in known).most_common(1)
    right, count = sum(row.original_right for row in known), len(known)
    if exact_interval(right, count)[0] > most / count:
        return []
    return [
        f"the original is right on {right / count:.1%} of {count:,} items, no better than one label"
        f" for all of them ({most / count:.1%}): that the device loses no accuracy, and a gate that"
        " is held, says nothing here"
    ]


def _looks(plan: SurveyPlan, asked: int) -> list[str]:
    """Return what is to be known of a survey that had ended, and asked more after that."""
    if not any(one["ended"] is not None and one["asked"] < asked for one in plan.earlier):
        return []
    return [
        "the survey had ended and went on: an interval is for one look, and is too narrow for who"
        " goes on until it pleases; gates hold at every look"
    ]


def _plan(plan: SurveyPlan, document: RunDocument) -> dict[str, Any]:
    cells = plan.cells[1:]
    return {
        "conditions": list(dict.fromkeys(cell.condition for cell in cells)),
        "severities": sorted({cell.severity for cell in cells}),
        "inputs": dict(plan.inputs),
        "groups": None if plan.groups is None else plan.groups["column"],
        "precision": plan.precision,
        "device_queries": plan.device_queries,
        "time_limit": plan.time_limit,
        "earlier": [dict(one) for one in plan.earlier],
        "confidence": plan.confidence,
        "gates": list(plan.gates),
        "findings": plan.findings,
        "rare_queries": plan.rare_queries,
        "rng_seed": document.rng_seed,
        "limit": document.plan["limit"],
        "first": document.plan.get("first"),
        "ensemble": list(document.ensemble),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    """Return which item a finding is; its operator says the condition and the severity."""
    condition, _, severity = (finding.operators or (f"{UNCHANGED}:0",))[0].rpartition(":")
    return {
        "seed_id": finding.seed_id,
        "condition": condition,
        "severity": int(severity),
        "strength": finding.strength,
    }
