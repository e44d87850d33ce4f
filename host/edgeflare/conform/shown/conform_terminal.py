"""A conformance run on the terminal: what the device does wrong first, then what was covered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.findings.fault_condition import fact_names
from edgeflare.conform.operators.known_operators import known_operators
from edgeflare.conform.record.conform_document import ConformDocument, FoundFault, ModelCoverage
from edgeflare.conform.record.conform_header import ConformHeader
from edgeflare.conform.shown.conform_words import (
    FindingSection,
    cells_of,
    count_of,
    coverage_sentence,
    finding_sections,
    finding_sentence,
    headline,
    model_sentence,
    refused_sentence,
    tried_words,
    untried_words,
    witness_sentence,
)
from edgeflare.untrusted_text import printable

_TITLES = {
    "still": "Still fails",
    "otherwise": "Fails in another way",
    "refused": "The device refuses the model",
    "mended": "Mended",
}


MOST: Final = 12
"""Findings of one kind that are listed; the page has all."""


def print_conformance(console: Console, document: ConformDocument, where: str) -> None:
    """Print a conformance run.

    Args:
        console: where to.
        document: as `read_conformance` returns it.
        where: the run directory, as the user knows it.

    """
    parts: list[RenderableType] = [Text(printable(headline(document)), style="bold")]
    parts += [Text(printable(one)) for one in model_sentence(document)]
    parts += [Text(f"warning: {printable(one)}", style="yellow") for one in document.warnings]
    parts += [_listed(one) for one in finding_sections(document)]
    parts.append("")
    sentences = (coverage_sentence(document), *refused_sentence(document))
    parts += [Text(printable(one)) for one in sentences]
    console.print(Group(*parts))
    # As one line, whatever the width, so that the command can be copied.
    shown = f"Everything is in {where}; see it: edgeflare report {where} --html"
    console.print(Text(shown, style="dim"), soft_wrap=True)


def _listed(section: FindingSection) -> Group:
    findings = section.findings
    rest = f" (the first {MOST} of {len(findings)})" if len(findings) > MOST else ""
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", style="bold")
    table.add_column()
    for one in findings[:MOST]:
        table.add_row(f"{one.number}", Text(printable(finding_sentence(one))))
        table.add_row("", Text(printable(witness_sentence(one)), style="dim"))
    return Group("", Text(f"{section.title}{rest}", style="bold"), table)


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
        device: its name.
        lines: one for each finding.

    """
    counts = {name: sum(one.outcome == name for one in lines) for name in _TITLES}
    fail = counts["still"] + counts["otherwise"]
    refused = f", refused: {counts['refused']}" if counts["refused"] else ""
    said = f"{device}: findings that fail: {fail} of {len(lines)}, mended: {counts['mended']}"
    console.print(Text(printable(said + refused), style="bold"))
    for outcome, title in _TITLES.items():
        of_it = [one for one in lines if one.outcome == outcome]
        if of_it:
            console.print()
            console.print(Text(title, style="bold"))
            console.print(_table(of_it))


def _table(lines: Sequence[RetryLine]) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", style="bold")
    table.add_column()
    for one in lines:
        known = one.finding.known
        table.add_row(f"{one.finding.number}", Text(printable(finding_sentence(one.finding))))
        if one.detail:
            table.add_row("", Text(printable(one.detail), style="dim"))
        if known is not None:
            table.add_row("", Text(printable(f"known: {known}"), style="dim"))
    return table


def listed_operators(cells: tuple[Cell, ...]) -> list[dict[str, Any]]:
    """Return operators as plain JSON values: types, and parameters with their buckets.

    Args:
        cells: those to list.

    """
    names = dict.fromkeys(operator for operator, _ in cells)
    return [
        _listed_operator(name, [type_ for one, type_ in cells if one == name]) for name in names
    ]


def _listed_operator(operator: str, types: list[str]) -> dict[str, Any]:
    parameters: dict[str, dict[str, Any]] = {}
    for type_ in types:
        for one in known_operators()[operator].parameters(type_):
            known = parameters.setdefault(
                one.name, {"name": one.name, "kind": one.kind, "buckets": {}}
            )
            known["buckets"] |= dict.fromkeys(one.buckets)
    for named in parameters.values():
        named["buckets"] = list(named["buckets"])
    return {"operator": operator, "types": types, "parameters": list(parameters.values())}


def print_operators(console: Console, cells: tuple[Cell, ...]) -> None:
    """Print operators; of one alone its parameters too."""
    listed = listed_operators(cells)
    if len(listed) == 1:
        (only,) = listed
        console.print(Text(f"{only['operator']}: {', '.join(only['types'])}", style="bold"))
        table = Table("parameter", "changes", "what coverage tells apart", box=None, pad_edge=False)
        for one in only["parameters"]:
            table.add_row(one["name"], one["kind"], Text(", ".join(one["buckets"])))
        console.print(table)
        facts = dict.fromkeys(name for cell in cells for name in fact_names(cell))
        if facts:
            console.print(Text(f"Conditions speak of these, too: {', '.join(facts)}."))
        return
    table = Table("operator", "types", "parameters", box=None, pad_edge=False)
    for operator in listed:
        names = ", ".join(one["name"] for one in operator["parameters"])
        table.add_row(operator["operator"], ", ".join(operator["types"]), Text(names))
    console.print(table)
    console.print(
        Text(f"{len(listed)} operators, {len(cells)} operators and types", style="dim"),
    )


def look_lines(header: ConformHeader, model: ModelCoverage | None, path: Path) -> Iterator[str]:
    """Yield what a run would do.

    Args:
        header: what run it would be.
        model: what is known of the model that the user named; None for none.
        path: of the run directory.

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
        for one in model.untried:
            yield printable(f"  not tried: {untried_words(one, model.arithmetic)}")
    ends = []
    if request.models is not None:
        ends.append(f"after {count_of(request.models, 'model')}")
    if request.seconds is not None:
        seconds = request.seconds
        ends.append(f"after {seconds:g} {'second' if seconds == 1 else 'seconds'}")
    pairs = ", and ordered pairs" if request.pairs else ""
    yield f"drawn: {request.drawing}{pairs}, run seed {request.rng_seed};" + (
        f" ends {' or '.join(ends)}"
    )
    yield printable(f"the run directory would be {path}; nothing was written")


def _model_line(model: ModelCoverage, models: int | None) -> str:
    """Return what is run of the model that the user named."""
    told = f"{model.distinct} distinct operators of {model.file} as they stand"
    if models is not None and models <= model.distinct:
        return f"at most {models} of the {told}"
    return f"first the {told}, then models near them"
