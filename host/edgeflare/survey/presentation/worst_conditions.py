"""The worst conditions of a survey, with the strongest deviations that were stored of each."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from edgeflare.pages.html_page import page_environment
from edgeflare.pages.page_allowance import PageAllowance, allowance
from edgeflare.report.html.card import EntryCard, answer_pictures, make_card
from edgeflare.report.run_page import alike_entries
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDocument
from edgeflare.survey.presentation.survey_tables import worst_first
from edgeflare.survey.presentation.survey_words import gated_conditions
from edgeflare.survey.rates.rate_words import interval
from edgeflare.survey.rates.slices import SurveySlice
from edgeflare.survey.record.survey_document import SurveyDocument, SurveyFinding

CONDITIONS = 8
"""Conditions that are shown with examples; those that gates name are shown, too."""

EXAMPLES = 4
"""Deviations that are shown of each."""


def worst_conditions_html(
    document: SurveyDocument, run: RunDocument, directory: RunDirectory
) -> str:
    """Return the worst conditions with cards of their deviations, as HTML; or nothing.

    Args:
        document: as `read_survey` returns it.
        run: document of its run, with the findings that are shown.
        directory: where its inputs are.

    """
    worst = worst_conditions(document, run, directory)
    environment = page_environment("edgeflare.survey.presentation", "edgeflare.report.html")
    template = environment.get_template("worst_conditions.html.j2")
    return template.render(worst=worst) if worst else ""


@dataclass(frozen=True, slots=True)
class _Example:
    """A stored deviation: its severity and card, and how many of the condition are like it."""

    severity: int
    card: EntryCard
    alike: int


@dataclass(frozen=True, slots=True)
class _WorstCondition:
    """A condition with its strongest deviations.

    Attributes:
        name: the condition's name.
        rate: rate of its deviations, with the interval.
        examples: the strongest first, of those that are alike one; none of a condition that a gate
            names where none was stored.

    """

    name: str
    rate: str
    examples: tuple[_Example, ...]


def worst_conditions(
    document: SurveyDocument, run: RunDocument, directory: RunDirectory
) -> list[_WorstCondition]:
    """Return the worst conditions of which deviations were stored, the highest rate first.

    Those that gates name are among them in any case, and the inputs unchanged are the last.

    Args:
        document: document of the survey.
        run: document of its run, with the findings.
        directory: where its inputs are. One that is gone is missing in the page, too.

    """
    entries = {entry.seed_id: entry for entry in run.deviations}
    stored: dict[str, list[SurveyFinding]] = {}
    for finding in document.findings:
        if finding.seed_id in entries:
            stored.setdefault(finding.condition, []).append(finding)
    worst = _worst(document, stored)
    severities = {finding.seed_id: finding.severity for finding in document.findings}
    shown = {
        part.condition: alike_entries(
            run,
            sorted(
                (entries[found.seed_id] for found in stored.get(part.condition or "", ())),
                key=lambda entry: -(entry.strength or 0.0),
            ),
        )[:EXAMPLES]
        for part in worst
    }
    found = [first for groups in shown.values() for first, *_ in groups]
    most = PageAllowance(allowance(sum(3 + answer_pictures(entry) for entry in found)))
    return [
        _WorstCondition(
            part.condition or "",
            interval(part.rate),
            tuple(
                _Example(
                    severities[first.seed_id], make_card(run, first, directory, most), 1 + len(rest)
                )
                for first, *rest in shown[part.condition]
            ),
        )
        for part in worst
    ]


def _worst(document: SurveyDocument, stored: Collection[str]) -> list[SurveySlice]:
    """Return the slices that are shown, in their order."""
    gated = gated_conditions(document) if stored else ()
    ordered = worst_first(document.by_condition.slices)
    worst = [part.condition for part in ordered if part.condition in stored][:CONDITIONS]
    conditions = [part for part in ordered if part.condition in (*worst, *gated)]
    unchanged = document.unchanged
    return [*conditions, unchanged] if unchanged.condition in stored else conditions
