"""Findings of a conformance run that were tried again, on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from edgeflare.conform.record.conform_document import FoundFault
from edgeflare.conform.shown.conform_words import finding_sentence
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
