"""A survey as Markdown for the summary of a CI job."""

from __future__ import annotations

from collections.abc import Iterator

from edgeflare.pages.markdown import markdown_table
from edgeflare.survey.gates.judged_gates import HELD, NOT_HELD, UNDECIDED
from edgeflare.survey.record.survey_document import SurveyDocument
from edgeflare.survey.shown.gate_words import gate_sentence, next_step
from edgeflare.survey.shown.survey_tables import FigureTable
from edgeflare.survey.shown.survey_terminal import short_tables
from edgeflare.survey.shown.survey_words import (
    accuracy_sentence,
    cut_off,
    ending,
    field_sentence,
    headline,
    rare_sentences,
    release_sentence,
)
from edgeflare.untrusted_text import for_markdown

_MARKS = {HELD: "✅", NOT_HELD: "❌", UNDECIDED: "⚠️"}


def survey_summary(document: SurveyDocument) -> str:
    """Return a survey as Markdown (GitHub's flavour).

    Args:
        document: as `read_survey` returns it.

    """
    return "\n\n".join(_parts(document)) + "\n"


def _parts(document: SurveyDocument) -> Iterator[str]:
    name = for_markdown(document.pair.name)
    yield f"## EdgeFlare survey: {name}"
    yield f"{name} **{for_markdown(headline(document))}**."
    if right := accuracy_sentence(document):
        yield for_markdown(right)
    yield for_markdown(field_sentence(document))
    if cut_off(document):
        yield f"> [!WARNING]\n> This is not the whole survey: it was {ending(document)}."
    yield from (f"> [!WARNING]\n> {for_markdown(one)}" for one in document.warnings)
    for gate in document.gates:
        said = for_markdown(gate_sentence(gate) + next_step(document, gate))
        yield f"{_MARKS[gate.state]} Gate {said}"
    yield from (_table(one) for one in short_tables(document) if one.rows)
    if rare := rare_sentences(document):
        yield "### Rare events"
        yield for_markdown(" ".join(rare))
    yield "### For the release notes"
    yield for_markdown(release_sentence(document))


def _table(one: FigureTable) -> str:
    note = f"{for_markdown(one.note)}\n\n" if one.note else ""
    return f"### {for_markdown(one.title)}\n\n{note}{markdown_table(one.header, one.rows)}"
