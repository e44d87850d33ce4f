"""A conformance run as one HTML file: `conform.html`. It runs no script, and asks for nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from edgeflare.conform.record.conform_document import ConformDocument, FoundFault
from edgeflare.conform.shown.conform_words import (
    asked_besides_cells,
    condition_words,
    coverage_sentence,
    ending_sentence,
    finding_sections,
    headline,
    model_sentence,
    settings_words,
    title_of,
    verdict_words,
    worst_words,
    wrong_words,
)
from edgeflare.pages.facts import details
from edgeflare.pages.html_template import packaged, page_environment


@dataclass(frozen=True, slots=True)
class MapCell:
    """An operator and a type in the map of what was tried.

    Attributes:
        mark: "fails", "known", "shared", "host", "refused", "right" or "untried".
        text: what stands in it: how many models.
        title: the same in a sentence.

    """

    mark: str
    text: str
    title: str


def render_conformance(document: ConformDocument) -> str:
    """Return a conformance run as an HTML document.

    Args:
        document: as `read_conformance` returns it.

    """
    types = list(dict.fromkeys(type_ for _, type_ in document.request.cells))
    return (
        page_environment("edgeflare.conform.shown.page")
        .get_template("conform.html.j2")
        .render(
            run=document,
            headline=headline(document),
            coverage=coverage_sentence(document),
            ended=ending_sentence(document),
            model=model_sentence(document),
            types=types,
            rows=_rows(document, types),
            sections=finding_sections(document),
            condition_words=condition_words,
            settings_words=settings_words,
            title_of=title_of,
            verdict_words=verdict_words,
            worst_words=worst_words,
            wrong_words=wrong_words,
            device=details(msgspec.to_builtins(document.device)),
            asked=details(asked_besides_cells(document)),
            style=packaged("style.css"),
        )
    )


def _rows(document: ConformDocument, types: Sequence[str]) -> dict[str, list[MapCell | None]]:
    """Return the map's rows: for each operator a cell for each type, None where it has none."""
    cells = {(one.operator, one.type): one.verdicts for one in document.cells}
    asked = {(operator, type_) for operator, type_ in document.request.cells}
    found: dict[tuple[str, str], list[FoundFault]] = {}
    for one in document.findings:
        found.setdefault((one.operator, one.type), []).append(one)
    return {
        operator: [
            _cell(cells.get((operator, type_), {}), found.get((operator, type_), []))
            if (operator, type_) in asked
            else None
            for type_ in types
        ]
        for operator in dict.fromkeys(operator for operator, _ in document.request.cells)
    }


def _cell(verdicts: Mapping[str, int], findings: Sequence[FoundFault]) -> MapCell:
    models = sum(verdicts.values())
    if not models:
        return MapCell("untried", "–", "no model was tried")
    if set(verdicts) == {"refused"}:
        return MapCell("refused", f"{models:,}", f"all {models:,} models were refused")
    said = ", ".join(f"{count:,} {verdict}" for verdict, count in verdicts.items())
    return MapCell(_mark(findings), f"{models:,}", said)


def _mark(findings: Sequence[FoundFault]) -> str:
    """Return the worst that findings say of their cell."""
    marks = {
        "fails": any(one.is_new for one in findings),
        "known": any(one.counted for one in findings),
        "shared": any(one.verdict != "host" for one in findings),
        "host": bool(findings),
    }
    return next((mark for mark, is_so in marks.items() if is_so), "right")
