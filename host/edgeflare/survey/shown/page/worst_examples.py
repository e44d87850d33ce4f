"""The worst conditions of a survey, each with the strongest deviations that were stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from edgeflare.report.html.card import Card, make_card
from edgeflare.report.html.mask_group import mask_pictures
from edgeflare.report.html.page_allowance import PageAllowance, allowance
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDocument
from edgeflare.survey.rates.rate_words import interval
from edgeflare.survey.shown.gate_words import gated_conditions
from edgeflare.survey.shown.survey_tables import worst_first
from edgeflare.survey.shown.survey_words import rate_key

CONDITIONS = 8
"""Conditions that are shown with examples; those that gates name are shown, too."""

EXAMPLES = 4
"""Deviations that are shown of each."""


@dataclass(frozen=True, slots=True)
class Example:
    """A stored deviation: at what severity, and its card."""

    severity: int
    card: Card


@dataclass(frozen=True, slots=True)
class WorstCondition:
    """A condition with its strongest deviations.

    Attributes:
        name: of the condition.
        rate: of its deviations, with the interval.
        examples: the strongest first; none of a condition that a gate names where none was stored.

    """

    name: str
    rate: str
    examples: tuple[Example, ...]


def worst_conditions(
    document: Mapping[str, Any], run: RunDocument | None, directory: RunDirectory
) -> list[WorstCondition]:
    """Return the worst conditions of which deviations were stored, the highest rate first.

    Those that gates name are among them in any case, and the inputs unchanged are the last.

    Args:
        document: of the survey.
        run: that of its run, with the findings; None where there is none.
        directory: where its inputs are. One that is gone is missing in the page, too.

    """
    if run is None:
        return []
    entries = {entry.seed_id: entry for entry in run.deviations}
    stored: dict[str, list[Mapping[str, Any]]] = {}
    for one in document["findings"]:
        if one["seed_id"] in entries:
            stored.setdefault(one["condition"], []).append(one)
    worst = _worst(document, stored)
    shown = {
        one["condition"]: sorted(stored.get(one["condition"], []), key=_strongest_first)[:EXAMPLES]
        for one in worst
    }
    found = [entries[one["seed_id"]] for some in shown.values() for one in some]
    most = PageAllowance(allowance(sum(3 + mask_pictures(entry) for entry in found)))
    return [
        WorstCondition(
            one["condition"],
            interval(one[rate_key(document)]),
            tuple(
                Example(
                    example["severity"],
                    make_card(run, entries[example["seed_id"]], directory, most),
                )
                for example in shown[one["condition"]]
            ),
        )
        for one in worst
    ]


def _worst(document: Mapping[str, Any], stored: Collection[str]) -> list[Mapping[str, Any]]:
    """Return the slices that are shown, in their order."""
    gated = gated_conditions(document) if stored else ()
    ordered = worst_first(document, document["by_condition"]["slices"])
    worst = [one["condition"] for one in ordered if one["condition"] in stored][:CONDITIONS]
    conditions = [one for one in ordered if one["condition"] in (*worst, *gated)]
    unchanged = document["unchanged"]
    return [*conditions, unchanged] if unchanged["condition"] in stored else conditions


def _strongest_first(one: Mapping[str, Any]) -> float:
    return -(one["strength"] or 0.0)
