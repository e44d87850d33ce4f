"""A conformance run as a page: the findings, the map of what was tried, and what was asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from edgeflare.conform.presentation.conform_words import (
    alike_findings,
    asked_besides_cells,
    condition_words,
    coverage_sentence,
    ending_sentence,
    finding_sections,
    headline,
    issue_words,
    model_sentence,
    refused_sentence,
    settings_words,
    title_of,
    tries_little,
    verdict_words,
    worst_words,
    wrong_words,
)
from edgeflare.conform.record.conform_document import ConformDocument, FoundFault
from edgeflare.pages.facts import count_of, details, in_words
from edgeflare.pages.page import (
    Block,
    Card,
    Cards,
    Facts,
    Mark,
    Page,
    Section,
    Sentences,
    Table,
    TableCell,
)

_MAP = (
    "How many models of each were run. Strong colour: the device fails. Pale: device and twin fail"
    " alike, or the fault is accepted. In the colour of links: only kernels of the host fail."
    " Italic: the device refuses all."
)


def conform_page(document: ConformDocument) -> Page:
    """Return what a conformance run says.

    Args:
        document: as `read_conformance` returns it.

    """
    cut_off = [f"This is not the whole run. {ending_sentence(document)}"] * _cut_off(document)
    return Page(
        kind="EdgeFlare kernel conformance",
        name=document.device.name,
        question="Are the operators right on this device?",
        mark=_mark(document),
        lead=headline(document),
        words=model_sentence(document),
        warnings=[*cut_off, *document.warnings],
        sections=[
            *(
                Section(
                    id=finding_section.id,
                    title=finding_section.title,
                    blocks=[Cards(_cards(finding_section.findings), noun="finding")],
                )
                for finding_section in finding_sections(document)
            ),
            Section(
                id="covered",
                title="What was covered",
                blocks=[Sentences([coverage_sentence(document), *refused_sentence(document)])],
            ),
            *_in_full(document),
        ],
        source="conform.json",
        version=document.edgeflare,
    )


def _cut_off(document: ConformDocument) -> bool:
    return document.interrupted_by is not None


def _mark(document: ConformDocument) -> Mark:
    if any(finding.is_new for finding in document.findings):
        return "fail"
    model = document.model
    little = model is not None and tries_little(model)
    return "attention" if little or _cut_off(document) else "pass"


def _cards(findings: Sequence[FoundFault]) -> list[Card]:
    return [_card(first, others) for first, *others in alike_findings(findings)]


def _card(one: FoundFault, alike: Sequence[FoundFault]) -> Card:
    accepted = [("accepted", one.accepted)] if one.accepted is not None else []
    facts = [
        ("when", condition_words(one)),
        ("worst", worst_words(one) or "–"),
        ("wrong", wrong_words(one) or "–"),
        ("models", f"{one.failing:,}"),
        *([("in the model", ", ".join(one.graphs))] if one.graphs else []),
        *accepted,
        *([("known issue", known)] if (known := issue_words(one)) else []),
        *([("alike", ", ".join(map(_alike_words, alike)))] if alike else []),
    ]
    return Card(
        id=f"finding-{one.number}",
        number=str(one.number),
        title=f"{title_of(one)}: {in_words(one.symptom)}",
        chips=[(one.verdict, "kernel" if one.is_new else "mixed")],
        facts=facts,
        words=[verdict_words(one), *filter(None, [one.detail])],
        folded=[
            ("The smallest model", _smallest(one)),
            *((f"That of {other.number}, {title_of(other)}", _smallest(other)) for other in alike),
        ],
    )


def _alike_words(finding: FoundFault) -> str:
    thread = "" if finding.issue is None else f": {finding.issue.thread or 'known'}"
    return f"{finding.number} {title_of(finding)}{thread}"


def _smallest(one: FoundFault) -> list[Block]:
    """Return the smallest model that shows a finding, with the settings of each operator."""
    smallest = one.smallest
    again = "" if smallest.repeats else " It did not fail again."
    said = (
        f"{count_of(len(smallest.operators), 'operator')}, given"
        f" {count_of(smallest.elements, 'value')}; it took"
        f" {count_of(smallest.device_runs, 'run')} on the device to find."
        f" File {smallest.file}.{again}"
    )
    nodes = (
        Table(title=f"{node.operator} {node.type}", header=("", ""), rows=settings_words(node))
        for node in smallest.operators
    )
    return [Sentences([said]), *nodes]


def _in_full(document: ConformDocument) -> Iterator[Section]:
    """Yield what a browser alone has room for."""
    types = list(dict.fromkeys(type_ for _, type_ in document.plan.cells))
    tried = Table(title="", header=("operator", *types), rows=list(_map_rows(document, types)))
    yield Section(id="map", title="Operators and types", words=_MAP, blocks=[tried], brief=False)
    refused = Table(
        title="",
        header=("operator", "type", "always", "the runtime's message", "models"),
        rows=[
            (
                models.operator,
                models.type,
                "yes" if models.always else "no",
                models.message,
                f"{models.models:,}",
            )
            for models in document.refused
        ],
        numbers_from=4,
    )
    yield Section(id="refused", title="What is refused", blocks=[refused], brief=False)
    host = document.host
    beside = (
        f"{ending_sentence(document)} Beside the device the host ran {', '.join(host.kernels)} of"
        f" {host.in_words}; what is right was computed in 64-bit arithmetic."
    )
    asked = Facts("Request", details(asked_besides_cells(document)))
    device = Facts("Device", details(msgspec.to_builtins(document.device)))
    yield Section(
        id="ran",
        title="What was asked, and where it ran",
        words=beside,
        blocks=[asked, device],
        brief=False,
    )


def _map_rows(document: ConformDocument, types: Sequence[str]) -> Iterator[list[str | TableCell]]:
    """Yield the map's rows: for each operator a cell for each type, empty where it has none."""
    cells = {(cell.operator, cell.type): cell.verdicts for cell in document.cells}
    asked = {(operator, type_) for operator, type_ in document.plan.cells}
    found: dict[tuple[str, str], list[FoundFault]] = {}
    for finding in document.findings:
        found.setdefault((finding.operator, finding.type), []).append(finding)
    for operator in dict.fromkeys(operator for operator, _ in document.plan.cells):
        of_types = [(operator, type_) for type_ in types]
        yield [
            operator,
            *(
                _map_cell(cells.get(cell, {}), found.get(cell, [])) if cell in asked else ""
                for cell in of_types
            ),
        ]


def _map_cell(verdicts: Mapping[str, int], findings: Sequence[FoundFault]) -> TableCell:
    models = sum(verdicts.values())
    if not models:
        return TableCell("–", "no model was tried", "untried")
    if set(verdicts) == {"refused"}:
        return TableCell(f"{models:,}", f"all {models:,} models were refused", "refused")
    said = ", ".join(f"{count:,} {verdict}" for verdict, count in verdicts.items())
    return TableCell(f"{models:,}", said, _map_mark(findings))


def _map_mark(findings: Sequence[FoundFault]) -> str:
    """Return the worst that findings say of their cell."""
    marks = {
        "fails": any(finding.is_new for finding in findings),
        "accepted": any(finding.counted for finding in findings),
        "shared": any(finding.verdict != "host" for finding in findings),
        "host": bool(findings),
    }
    return next((mark for mark, is_so in marks.items() if is_so), "right")
