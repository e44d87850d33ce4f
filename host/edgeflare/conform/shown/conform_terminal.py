"""A conformance run on the terminal: what the device does wrong first, then what was covered."""

from __future__ import annotations

from typing import Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from edgeflare.conform.record.conform_document import ConformDocument
from edgeflare.conform.shown.conform_words import (
    FindingSection,
    coverage_sentence,
    finding_sections,
    finding_sentence,
    headline,
    model_sentence,
    refused_sentence,
    witness_sentence,
)
from edgeflare.untrusted_text import printable

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
