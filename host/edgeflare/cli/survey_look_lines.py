"""What `edgeflare survey --dry-run` says: what would be asked, and what that would take."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Final

from edgeflare.campaign.dry_run import DryRun
from edgeflare.cli.time_left import in_words
from edgeflare.report.interface_lines import interface_lines
from edgeflare.report.run_terminal import looked_lines
from edgeflare.run.undelegated_devices import undelegated
from edgeflare.survey.gates.survey_gate import Gate
from edgeflare.survey.rare.rare_phase import rare_plan
from edgeflare.survey.rates.rate_words import counted
from edgeflare.survey.record.survey_plan import cells_in_words
from edgeflare.survey.shown.gate_words import gate_name
from edgeflare.survey.survey_look import SurveyLook, SurveyProgress
from edgeflare.survey.survey_run import Survey

_SHORT: Final = 10.0
"""Seconds below which each counts."""


def look_lines(
    survey: Survey,
    look: SurveyLook,
    first: DryRun,
    path: Path,
    progress: SurveyProgress | None = None,
) -> Iterator[str]:
    """Yield what a survey would do, and what that would take.

    Args:
        survey: ready to be run.
        look: what it would take.
        first: what the first inputs show, unchanged.
        path: of the run directory that it would write.
        progress: how far it has come, where it is to be gone on with.

    """
    if progress is not None:
        yield _gone_on_with(survey, progress)
    if progress is None or not progress.ended:
        yield from _asked(survey, look)
    yield from interface_lines(survey.header)
    yield from looked_lines(first, "inputs")
    doing = "write" if progress is None else "go on with"
    yield f"would {doing} {path}; nothing was written"
    notes = (*survey.opened.pair.notes, *survey.opened.seeds.notes)
    for note in (*notes, *first.warnings, *undelegated(survey.header.devices)):
        yield f"warning: {note}"


def _asked(survey: Survey, look: SurveyLook) -> Iterator[str]:
    """Yield what would be asked, and what that would take."""
    yield f"{_surveyed(survey)}, {_about(look.host_seconds)} on the host"
    if cells := cells_in_words(survey.plan):
        yield cells
    yield (
        f"at most {counted(look.most_queries, 'device query', 'device queries')} of about"
        f" {look.device_seconds * 1e3:.3g} ms, in all"
        f" {_about(look.device_seconds * look.most_queries)}"
    )
    yield from _ends(survey, look)
    if survey.plan.rare_queries is not None:
        rare = rare_plan(survey.plan.rare_queries, survey.plan.confidence)
        yield (
            f"then rare events, about {rare.device_queries:,} device queries more, and at least"
            f" about {rare.least_for_a_shell} for each shell: the rarer the event, the more shells"
        )


def _gone_on_with(survey: Survey, progress: SurveyProgress) -> str:
    """Say how far a survey has come; what follows is said of all of it."""
    done = (
        f"the host has answered {progress.host:,} of {counted(len(survey.items), 'item', 'items')},"
        f" the device {progress.device:,}"
    )
    if progress.ended:
        return f"nothing further would be asked: {done}: it has ended"
    return f"goes on: {done}"


def _surveyed(survey: Survey) -> str:
    inputs = counted(len(survey.items.inputs), "input", "inputs")
    items = counted(len(survey.items), "item", "items")
    conditions = len(survey.items.conditions)
    if not conditions:
        return f"{inputs} as they are: {items}"
    cells = counted(len(survey.items.cells) - 1, "cell", "cells")
    return (
        f"{inputs}, unchanged and under {counted(conditions, 'condition', 'conditions')} in"
        f" {cells} of condition and severity: {items}"
    )


def _ends(survey: Survey, look: SurveyLook) -> Iterator[str]:
    """Yield what ends the survey before all is asked that may be."""
    plan = survey.plan
    if survey.gates.gates:
        gates = "; ".join(_named(gate, survey) for gate in survey.gates.gates)
        yield f"asked until each gate is decided: {gates}"
    if plan.precision is not None:
        yield (
            f"asked until the over-all rate is known to ±{100 * plan.precision:g} points: plain"
            f" sampling needs {look.plain_queries:,} queries for that at a rate of 5 %, and this"
            " fewer the better the twin foretells the device"
        )
    if plan.time_limit is not None:
        yield f"asked for {plan.time_limit:,g} s at most"


def _about(seconds: float) -> str:
    if seconds < _SHORT:
        return f"about {ceil(seconds)} s" if seconds > 1.0 else "less than 1 s"
    return f"about {in_words(seconds)}"


def _named(gate: Gate, survey: Survey) -> str:
    name = gate.condition or ""
    return gate_name(
        {
            "gate": gate.text,
            "condition": name,
            "conditions": sorted(survey.gates.sets.get(name, ())),
            "left_out": survey.gates.left_out.get(name, ()),
        }
    )
