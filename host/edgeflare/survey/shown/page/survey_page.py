"""A survey as one HTML file: `survey.html`. It runs no script, and asks for nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from edgeflare.report.arm_lines import details
from edgeflare.report.entry_names import class_name
from edgeflare.report.html.page_template import packaged, page_environment
from edgeflare.report.input_words import input_words
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDocument
from edgeflare.survey.shown.gate_words import gate_name, next_step
from edgeflare.survey.shown.page.heat_map import heat_map
from edgeflare.survey.shown.page.severity_charts import severity_charts
from edgeflare.survey.shown.page.worst_examples import worst_conditions
from edgeflare.survey.shown.rare_words import rare_sentences
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
    release_sentence,
    shown_plan,
)

CLASSES = 100
"""Classes that the page lists, the worst first; `survey.csv` has all."""

WIDE = ("without ties", "helped")
"""Columns that a small screen has no room for; `survey.csv` has them. The headline counts ties, and
helped is harmed less the drop."""


def render_survey(
    document: Mapping[str, Any], directory: RunDirectory, run: RunDocument | None
) -> str:
    """Return a survey as an HTML document.

    Args:
        document: as `read_survey` returns it.
        directory: where its inputs are.
        run: that of its run, with the findings that are shown; None where there is none.

    """
    return (
        page_environment("edgeflare.survey.shown.page")
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
            inputs=input_words(document["pair"]),
            tables={key: some for key, some in _tables(document) if any(t.rows for t in some)},
            rare=rare_sentences(document),
            method=list(method_sentences(document)),
            asked=details(shown_plan(document)),
            cost=details(_cost(document)),
            details=details,
            gate_name=gate_name,
            next_step=next_step,
            style=packaged("style.css"),
        )
    )


def _tables(document: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[FigureTable]]]:
    """Yield the tables of each section by its name."""

    def table(title: str, name: str, slices: Sequence[Mapping[str, Any]]) -> FigureTable:
        return slice_table(document, title, slices, WIDE, each=document[name]["confidence"])

    conditions = document["by_condition"]["slices"]
    whole = [document["overall"], document["unchanged"]] if conditions else [document["unchanged"]]
    yield (
        "rates",
        [
            slice_table(document, "All inputs", whole, WIDE),
            table("By condition", "by_condition", worst_first(document, conditions)),
            table("By severity", "by_severity", document["by_severity"]["slices"]),
            table("By device", "by_device", document["by_device"]["slices"]),
        ],
    )
    yield "classes", [table("By class", "by_class", _classes(document))]
    groups = table("By group", "by_group", document["by_group"]["slices"])
    yield "groups", [groups, *group_tables(document)]
    yield "baseline", baseline_table(document)


def _classes(document: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    classes = worst_first(document, document["by_class"]["slices"])[:CLASSES]
    return [{**one, "name": class_name(document["classes"], one["label"])} for one in classes]


def _cost(document: Mapping[str, Any]) -> Mapping[str, Any]:
    keys = ("device_queries", "overhead_device_queries", "seconds")
    return {**{key: document[key] for key in keys}, "host": document["host"]}
