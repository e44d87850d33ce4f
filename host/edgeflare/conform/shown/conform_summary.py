"""A conformance run as Markdown for the summary of a CI job."""

from __future__ import annotations

from collections.abc import Iterator

from edgeflare.conform.record.conform_document import ConformDocument, FoundFault
from edgeflare.conform.shown.conform_words import (
    FindingSection,
    condition_words,
    coverage_sentence,
    ending_sentence,
    finding_sections,
    headline,
    model_sentence,
    refused_sentence,
    title_of,
    tries_little,
    worst_words,
    wrong_words,
)
from edgeflare.pages.markdown import markdown_table
from edgeflare.untrusted_text import for_markdown

ROWS = 30
"""Findings that a table lists; GitHub cuts off a summary of more than 1 MiB."""

_COLUMNS = ("", "operator", "how", "when", "worst", "wrong", "models")


def conform_summary(document: ConformDocument) -> str:
    """Return a conformance run as Markdown (GitHub's flavour).

    Args:
        document: as `read_conformance` returns it.

    """
    return "\n\n".join(_parts(document)) + "\n"


def _parts(document: ConformDocument) -> Iterator[str]:
    yield f"## EdgeFlare kernel conformance: {for_markdown(document.device.name)}"
    yield f"{_mark(document)} {for_markdown(headline(document))}."
    yield from map(for_markdown, model_sentence(document))
    if _cut_off(document):
        said = f"This is not the whole run. {ending_sentence(document)}"
        yield f"> [!WARNING]\n> {for_markdown(said)}"
    yield from (f"> [!WARNING]\n> {for_markdown(one)}" for one in document.warnings)
    for section in finding_sections(document):
        yield f"### {for_markdown(section.title)}"
        yield _table(section)
    yield "### What was covered"
    yield for_markdown(" ".join([coverage_sentence(document), *refused_sentence(document)]))


def _mark(document: ConformDocument) -> str:
    if any(one.is_new for one in document.findings):
        return "❌"
    model = document.model
    little = model is not None and tries_little(model)
    return "⚠️" if little or _cut_off(document) else "✅"


def _cut_off(document: ConformDocument) -> bool:
    return document.interrupted_by is not None


def _table(section: FindingSection) -> str:
    rows = [_cells(one) for one in section.findings[:ROWS]]
    table, rest = markdown_table(_COLUMNS, rows), len(section.findings) - ROWS
    return f"{table}\n\nand {rest:,} more" if rest > 0 else table


def _cells(one: FoundFault) -> tuple[str, ...]:
    return (
        str(one.number),
        title_of(one),
        one.symptom,
        condition_words(one),
        worst_words(one) or "–",
        wrong_words(one) or "–",
        f"{one.failing:,}",
    )
