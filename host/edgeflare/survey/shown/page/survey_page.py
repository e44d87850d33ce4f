"""A survey as one HTML file: `survey.html`. It runs no script, and asks for nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from edgeflare.pages.answers.answer_form import class_name
from edgeflare.pages.facts import details
from edgeflare.pages.html_page import packaged, page_environment
from edgeflare.pages.page_allowance import PageAllowance, allowance
from edgeflare.report.html.card import EntryCard, answer_pictures, make_card
from edgeflare.report.input_words import input_words
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDocument
from edgeflare.survey.rates.rate_words import bounds, estimated, exact, interval, together
from edgeflare.survey.rates.slices import SliceTable, SurveySlice
from edgeflare.survey.record.survey_document import SurveyDocument, SurveyFinding
from edgeflare.survey.shown.gate_words import gated_conditions, next_step
from edgeflare.survey.shown.page.severity_charts import severity_charts
from edgeflare.survey.shown.survey_tables import (
    FigureTable,
    baseline_table,
    group_tables,
    slice_table,
    worst_first,
)
from edgeflare.survey.shown.survey_words import (
    accuracy_sentence,
    cut_off,
    ending,
    field_sentence,
    headline,
    method_sentences,
    rare_sentences,
    release_sentence,
    shown_plan,
)

CONDITIONS = 8
"""Conditions that are shown with examples; those that gates name are shown, too."""

EXAMPLES = 4
"""Deviations that are shown of each."""

CLASSES = 100
"""Classes that the page lists, the worst first; `survey.csv` has all."""

WIDE = ("without ties", "helped")
"""Columns that a small screen has no room for; `survey.csv` has them. The headline counts ties, and
helped is harmed less the drop."""


def render_survey(
    document: SurveyDocument, directory: RunDirectory, run: RunDocument | None
) -> str:
    """Return a survey as an HTML document.

    Args:
        document: as `read_survey` returns it.
        directory: where its inputs are.
        run: that of its run, with the findings that are shown; None where there is none.

    """
    return (
        page_environment("edgeflare.survey.shown.page", "edgeflare.report.html")
        .get_template("survey.html.j2")
        .render(
            survey=document,
            headline=headline(document),
            sentence=release_sentence(document),
            right=accuracy_sentence(document),
            field=field_sentence(document),
            ended=ending(document),
            cut_off=cut_off(document),
            heat=heat_map(document),
            charts=severity_charts(document),
            worst=worst_conditions(document, run, directory),
            inputs=input_words(document.pair),
            tables={key: some for key, some in _tables(document) if any(t.rows for t in some)},
            rare=rare_sentences(document),
            method=list(method_sentences(document)),
            asked=details(shown_plan(document)),
            cost=details(
                {
                    "device_queries": document.device_queries,
                    "overhead_device_queries": document.overhead_device_queries,
                    "seconds": document.seconds,
                    "host": document.host,
                }
            ),
            details=details,
            next_step=next_step,
            style=packaged("style.css"),
        )
    )


def _tables(document: SurveyDocument) -> Iterator[tuple[str, Sequence[FigureTable]]]:
    """Yield the tables of each section by its name."""

    def table(title: str, of: SliceTable, slices: Sequence[SurveySlice] = ()) -> FigureTable:
        return slice_table(document, title, slices or of.slices, WIDE, each=of.confidence)

    by_condition, by_class = document.by_condition, document.by_class
    whole = [document.overall, document.unchanged] if by_condition.slices else [document.unchanged]
    yield (
        "rates",
        [
            slice_table(document, "All inputs", whole, WIDE),
            table("By condition", by_condition, worst_first(by_condition.slices)),
            table("By severity", document.by_severity),
            table("By device", document.by_device),
        ],
    )
    classes = [
        replace(one, name=class_name(document.classes, one.label))
        for one in worst_first(by_class.slices)[:CLASSES]
    ]
    yield "classes", [table("By class", by_class, classes)]
    yield "groups", [table("By group", document.by_group), *group_tables(document)]
    yield "baseline", baseline_table(document)


@dataclass(frozen=True, slots=True)
class _HeatCell:
    """A cell of the map.

    Attributes:
        rate: as a percentage.
        interval: of it, in percent; "exact" where there is none.
        title: the same in a sentence, with how many were asked.
        shade: from 0 to 100, that of the highest rate.

    """

    rate: str
    interval: str
    title: str
    shade: float


@dataclass(frozen=True, slots=True)
class _HeatMap:
    """The map.

    Attributes:
        severities: its columns.
        unchanged: the inputs as they are.
        rows: by condition, a cell for each severity; None where that was not surveyed.
        confidence: with which its intervals hold together, and each.

    """

    severities: Sequence[int]
    unchanged: _HeatCell
    rows: Mapping[str, Sequence[_HeatCell | None]]
    confidence: str


def heat_map(document: SurveyDocument) -> _HeatMap | None:
    """Return the map of a survey; None where only unchanged inputs were surveyed.

    Args:
        document: as `read_survey` returns it.

    """
    unchanged, *cells = document.by_cell.slices
    if not cells:
        return None
    highest = max(one.rate.estimate for one in (unchanged, *cells)) or 1.0
    by_place = {(one.condition or "", one.severity or 0): _cell(one, highest) for one in cells}
    severities = sorted({severity for _, severity in by_place})
    names = dict.fromkeys(condition for condition, _ in by_place)
    return _HeatMap(
        severities,
        _cell(unchanged, highest),
        {name: [by_place.get((name, severity)) for severity in severities] for name in names},
        together(document.confidence, document.by_cell.confidence),
    )


def _cell(one: SurveySlice, highest: float) -> _HeatCell:
    rate = one.rate
    limits = "exact" if exact(rate) else f"interval {bounds(rate)} %"
    said = (
        f"{one.name}: {estimated(rate)}, {limits};"
        f" {rate.asked:,} of {rate.items:,} asked, {rate.seen:,} of these deviate"
    )
    if (alone := rate.alone) is not None:
        said += f"; by their answers alone {interval(alone)}"
    shade = 100.0 * (rate.estimate / highest)
    return _HeatCell(estimated(rate), "exact" if exact(rate) else bounds(rate), said, shade)


@dataclass(frozen=True, slots=True)
class _Example:
    """A stored deviation: at what severity, and its card."""

    severity: int
    card: EntryCard


@dataclass(frozen=True, slots=True)
class _WorstCondition:
    """A condition with its strongest deviations.

    Attributes:
        name: of the condition.
        rate: of its deviations, with the interval.
        examples: the strongest first; none of a condition that a gate names where none was stored.

    """

    name: str
    rate: str
    examples: tuple[_Example, ...]


def worst_conditions(
    document: SurveyDocument, run: RunDocument | None, directory: RunDirectory
) -> list[_WorstCondition]:
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
    stored: dict[str, list[SurveyFinding]] = {}
    for one in document.findings:
        if one.seed_id in entries:
            stored.setdefault(one.condition, []).append(one)
    worst = _worst(document, stored)
    shown = {
        one.condition: sorted(
            stored.get(one.condition or "", ()), key=lambda found: -(found.strength or 0.0)
        )[:EXAMPLES]
        for one in worst
    }
    found = [entries[one.seed_id] for some in shown.values() for one in some]
    most = PageAllowance(allowance(sum(3 + answer_pictures(entry) for entry in found)))
    return [
        _WorstCondition(
            one.condition or "",
            interval(one.rate),
            tuple(
                _Example(
                    example.severity, make_card(run, entries[example.seed_id], directory, most)
                )
                for example in shown[one.condition]
            ),
        )
        for one in worst
    ]


def _worst(document: SurveyDocument, stored: Collection[str]) -> list[SurveySlice]:
    """Return the slices that are shown, in their order."""
    gated = gated_conditions(document) if stored else ()
    ordered = worst_first(document.by_condition.slices)
    worst = [one.condition for one in ordered if one.condition in stored][:CONDITIONS]
    conditions = [one for one in ordered if one.condition in (*worst, *gated)]
    unchanged = document.unchanged
    return [*conditions, unchanged] if unchanged.condition in stored else conditions
