"""What a survey's document says beside its rates: what was asked, of what, and what that took."""

from __future__ import annotations

from typing import Any

from edgeflare.run.journal import Journal
from edgeflare.run.run_document import Finding, RunDocument
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
    return {
        "pair": dict(document.pair),
        "devices": [
            {"name": one.name, "provenance": dict(one.provenance)} for one in document.devices
        ],
        "host": None if document.host is None else dict(document.host),
        "classes": list(document.classes),
        "plan": _plan(plan, document),
        "stopped_by": document.stopped_by or noted.get(ENDED_KEY),
        "seconds": totals.setup_seconds + totals.wall_seconds + totals.verify_seconds,
        "device_queries": asked,
        "overhead_device_queries": totals.overhead_device_queries - asked,
        "findings": [_finding(one) for one in document.deviations],
        "rare": noted.get(RARE_KEY),
        "warnings": [*document.warnings, *_looks(plan, asked)],
    }


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
