"""What the commands of conformance print beside a page: findings tried again, operators, a look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.findings.fault_condition import fact_names
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.presentation.conform_words import (
    cells_of,
    finding_sentence,
    tried_words,
    untried_words,
)
from edgeflare.conform.record.conform_document import FoundFault, ModelCoverage
from edgeflare.conform.record.conform_header import ConformHeader
from edgeflare.pages.facts import count_of
from edgeflare.pages.page import Card, Cards, Section, Table
from edgeflare.pages.terminal import print_blocks, print_section
from edgeflare.untrusted_text import printable

_TITLES = {
    "still": "Still fails",
    "otherwise": "Fails in another way",
    "refused": "The device refuses the model",
    "mended": "Mended",
}


@dataclass(frozen=True, slots=True)
class RetryLine:
    """What became of a finding.

    Attributes:
        finding: what it was, as the document has it.
        outcome: "still", "otherwise", "refused" or "mended".
        detail: what is known of it now; empty where there is nothing to say.

    """

    finding: FoundFault
    outcome: str
    detail: str


def print_retry(console: Console, device: str, lines: Sequence[RetryLine]) -> None:
    """Print what became of the findings of a run, those that fail first.

    Args:
        console: where to.
        device: name of the device.
        lines: one for each finding.

    """
    counts = {name: sum(line.outcome == name for line in lines) for name in _TITLES}
    fail = counts["still"] + counts["otherwise"]
    refused = f", refused: {counts['refused']}" if counts["refused"] else ""
    said = f"{device}: findings that fail: {fail} of {len(lines)}, mended: {counts['mended']}"
    console.print(Text(printable(said + refused), style="bold"))
    for outcome, title in _TITLES.items():
        cards = [_retry_card(line) for line in lines if line.outcome == outcome]
        section = Section(id=outcome, title=title, blocks=[Cards(cards, len(cards))])
        if cards:
            console.print()
            print_section(console, section)


def _retry_card(line: RetryLine) -> Card:
    accepted = [("accepted", line.finding.accepted)] if line.finding.accepted is not None else []
    return Card(
        id=str(line.finding.number),
        number=str(line.finding.number),
        title=finding_sentence(line.finding),
        facts=[*([("now", line.detail)] if line.detail else []), *accepted],
    )


def listed_operators(cells: tuple[Cell, ...]) -> list[dict[str, Any]]:
    """Return operators as plain JSON values: types, and parameters with their buckets.

    Args:
        cells: those to list.

    """
    names = dict.fromkeys(operator for operator, _ in cells)
    return [
        _listed_operator(name, [type_ for operator, type_ in cells if operator == name])
        for name in names
    ]


def _listed_operator(operator: str, types: list[str]) -> dict[str, Any]:
    parameters: dict[str, dict[str, Any]] = {}
    for type_ in types:
        for parameter in known_operators()[operator].parameters(type_):
            known = parameters.setdefault(
                parameter.name, {"name": parameter.name, "kind": parameter.kind, "buckets": {}}
            )
            known["buckets"] |= dict.fromkeys(parameter.buckets)
    for named in parameters.values():
        named["buckets"] = list(named["buckets"])
    return {"operator": operator, "types": types, "parameters": list(parameters.values())}


def print_operators(console: Console, cells: tuple[Cell, ...]) -> None:
    """Print operators; of one alone its parameters too."""
    first, *others = listed = listed_operators(cells)
    if others:
        rows = [
            (
                operator["operator"],
                ", ".join(operator["types"]),
                ", ".join(parameter["name"] for parameter in operator["parameters"]),
            )
            for operator in listed
        ]
        note = f"{count_of(len(listed), 'operator')}, {cells_of(len(cells))}"
        print_blocks(console, Table.of_words(("operator", "types", "parameters"), rows, note=note))
        return
    rows = [
        (listed_parameter["name"], listed_parameter["kind"], ", ".join(listed_parameter["buckets"]))
        for listed_parameter in first["parameters"]
    ]
    facts = dict.fromkeys(name for cell in cells for name in fact_names(cell))
    print_blocks(
        console,
        Table.of_words(
            ("parameter", "changes", "what coverage tells apart"),
            rows,
            title=f"{first['operator']}: {', '.join(first['types'])}",
            note=f"Conditions speak of these, too: {', '.join(facts)}." if facts else "",
        ),
    )


def look_lines(header: ConformHeader, model: ModelCoverage | None, doing: str) -> Iterator[str]:
    """Yield what a run would do.

    Args:
        header: what run it would be.
        model: what is known of the model that the user named; None for none.
        doing: what would be done with the run directory, in words.

    """
    request, device = header.request, header.device
    yield printable(
        f"{device.name}: {device.runtime} {device.runtime_version},"
        f" {device.kernels} kernels, beside {header.host_runtime} on the host"
    )
    operators = {operator for operator, _ in request.cells}
    types = Counter(type_ for _, type_ in request.cells)
    told = ", ".join(f"{count} in {type_}" for type_, count in types.most_common())
    yield f"{count_of(len(operators), 'operator')}, {cells_of(len(request.cells))}: {told}"
    if model is not None:
        yield printable(_model_line(model, request.models))
        yield printable(f"  {tried_words(model, 'can be')}")
        for operator in model.untried:
            yield printable(f"  not tried: {untried_words(operator, model.arithmetic)}")
    ends = []
    if request.models is not None:
        ends.append(f"after {count_of(request.models, 'model')}")
    if request.time_limit_seconds is not None:
        seconds = request.time_limit_seconds
        ends.append(f"after {seconds:g} {'second' if seconds == 1 else 'seconds'}")
    graphs = {"also": ", then graphs", "only": ", graphs alone", "none": ""}[request.graphs]
    yield f"drawn: {request.drawing}{graphs}, run seed {request.rng_seed};" + (
        f" ends {' or '.join(ends)}"
    )
    yield printable(f"would {doing}; nothing was written")


def _model_line(model: ModelCoverage, models: int | None) -> str:
    """Return what is run of the model that the user named."""
    told = f"{model.distinct} distinct operators of {model.file} as they stand"
    if models is not None and models <= model.distinct:
        return f"at most {models} of the {told}"
    return f"first the {told}, then models near them"
