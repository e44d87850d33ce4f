"""A survey as a page: its rate and gates, where it is worst, and how that was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from edgeflare.pages.facts import details
from edgeflare.pages.page import CheckLine, Facts, Illustration, Mark, Page, Section, Sentences
from edgeflare.report.arm_lines import folded_line
from edgeflare.report.entry_words import input_words
from edgeflare.survey.gates.gate_judgement import STATE_WORDS, State
from edgeflare.survey.presentation.survey_tables import (
    baseline_tables,
    class_table,
    group_tables,
    heat_tables,
    rate_tables,
)
from edgeflare.survey.presentation.survey_words import (
    accuracy_sentence,
    cut_off,
    ending,
    field_sentence,
    headline,
    method_sentences,
    next_step,
    rare_sentences,
    release_sentence,
    shown_plan,
)
from edgeflare.survey.rates.rate_words import together
from edgeflare.survey.record.survey_document import SurveyDocument

_MARKS: Mapping[State, Mark] = {"pass": "pass", "fail": "fail", "open": "attention"}

_GROUPS = (
    "Differences are those of the first group less the second, in percentage points, of these"
    " inputs alone. The other arms decide on all inputs, the device on a part, so that only its"
    " differences have an interval. SPD, the statistical parity difference: how much more often a"
    " class is decided on. EOD, the equal opportunity difference: the same among the inputs of the"
    " class. AAOD, the average absolute odds difference: the mean of that among the inputs of the"
    " class and among the others, both without sign. Of all classes the largest is shown, and for"
    " the device an interval that holds for it."
)

_BASELINE = (
    "The rate now less that before. p says how likely so uneven a change is by chance, if each"
    " input, with all its conditions, might as well have changed the other way; where a device was"
    " asked about a part, changes are estimated. It is corrected over the conditions after Holm."
)


def survey_page(
    document: SurveyDocument, examples: Callable[[], str] | None = None, where: str = "RUN"
) -> Page:
    """Return what a survey says.

    Args:
        document: as `read_survey` returns it.
        examples: draws deviations of the worst conditions, as HTML; None where none are drawn.
        where: the run directory as the user knows it; its placeholder in a file that is passed on.

    """
    cut = [f"This is not the whole survey: it was {ending(document)}."] * cut_off(document)
    why = ending(document)
    said = (
        accuracy_sentence(document),
        field_sentence(document),
        f"It ended when {why}." if why and not cut else "",
        folded_line(document.pair),
    )
    checks = [
        CheckLine(
            _MARKS[gate.state],
            gate.name,
            f"is {STATE_WORDS[gate.state]}: {gate.sentence}{next_step(document, gate, where)}",
        )
        for gate in document.gates
    ]
    return Page(
        kind="EdgeFlare survey",
        name=document.pair.name,
        on=", ".join(device.name for device in document.devices),
        mark=_mark(document),
        lead=f"{document.pair.name} {headline(document)}",
        words=[sentence for sentence in said if sentence],
        checks=checks,
        warnings=[*cut, *document.warnings],
        sections=[*_drawn(document, examples), *_tabled(document), *_told(document)],
        source="survey.json",
        version=document.edgeflare,
    )


def _mark(document: SurveyDocument) -> Mark | None:
    states = {gate.state for gate in document.gates}
    if "fail" in states:
        return "fail"
    if "open" in states or cut_off(document):
        return "attention"
    return "pass" if states else None


def _drawn(document: SurveyDocument, examples: Callable[[], str] | None) -> Iterator[Section]:
    """Yield what a browser alone has room for: the map, charts and examples."""
    each = together(document.confidence, document.by_cell.confidence)
    yield Section(
        id="heat",
        title="Conditions and severities",
        words="The share of deviating inputs, below it the interval in percent. The stronger the"
        f" colour of a cell, the higher its rate. Confidence of intervals: {each}.",
        blocks=heat_tables(document),
        brief=False,
    )
    charts = Illustration(lambda: _charts(document))
    yield Section(id="charts", title="Against severity", blocks=[charts], brief=False)
    yield Section(
        id="worst",
        title="The worst conditions",
        words="The strongest deviations that were stored of each; the stored inputs lie beside this"
        f" page, without loss. {input_words(document.pair).unchanged}",
        blocks=[] if examples is None else [Illustration(examples)],
        brief=False,
    )


def _charts(document: SurveyDocument) -> str:
    from edgeflare.pages.chart import charts_html  # noqa: PLC0415 - needs an extra
    from edgeflare.survey.presentation.severity_charts import severity_charts  # noqa: PLC0415

    return charts_html(severity_charts(document))


def _tabled(document: SurveyDocument) -> Iterator[Section]:
    """Yield the sections of tables."""
    yield Section(id="rates", title="Rates", blocks=rate_tables(document))
    classes = class_table(document)
    all_classes = f"The worst {len(classes.rows)} of {classes.count}; survey.csv has all of them."
    yield Section(
        id="classes",
        title="Classes",
        words=all_classes if classes.count > len(classes.rows) else "",
        blocks=[classes],
    )
    yield Section(id="groups", title="Groups", words=_GROUPS, blocks=group_tables(document))
    yield Section(
        id="baseline", title="Baseline", words=_BASELINE, blocks=baseline_tables(document)
    )


def _told(document: SurveyDocument) -> Iterator[Section]:
    """Yield what is said in sentences, and what was asked of whom."""
    rare, release = Sentences(rare_sentences(document)), Sentences([release_sentence(document)])
    yield Section(id="rare", title="Rare events", blocks=[rare])
    yield Section(id="release", title="For the release notes", blocks=[release])
    method = Sentences(list(method_sentences(document)))
    yield Section(id="method", title="Method", blocks=[method], brief=False)
    cost = {
        "device_queries": document.device_queries,
        "overhead_device_queries": document.overhead_device_queries,
        "seconds": document.seconds,
        "host": document.host,
    }
    yield Section(
        id="ran",
        title="What was asked, and where it ran",
        blocks=[
            Facts("Plan", details(shown_plan(document))),
            Facts("Cost", details(cost)),
            *(
                Facts(f"Device {device.name}", details(device.provenance))
                for device in document.devices
            ),
        ],
        brief=False,
    )
