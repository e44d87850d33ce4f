"""The columns of a table of a run's entries, for each report that has such a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from edgeflare.pages.facts import number
from edgeflare.report.answer_words import answer_cell, answer_columns
from edgeflare.report.arm_lines import device_numbers
from edgeflare.report.entry_names import cause_of, named_kind, seed_of, show_nearness
from edgeflare.report.figure_lines import who_was_right
from edgeflare.run.run_document import Finding, RunDocument


@dataclass(frozen=True, slots=True)
class EntryColumn:
    """A column.

    Attributes:
        name: its heading.
        cell: returns what it says of an entry.
        number: whether that is a figure, which stands to the right.
        long: whether it may need several lines.

    """

    name: str
    cell: Callable[[Finding], str]
    number: bool = False
    long: bool = False


def entry_columns(document: RunDocument, entries: Sequence[Finding]) -> Iterator[EntryColumn]:
    """Yield the columns of a table of entries, those that say something of any."""
    yield EntryColumn("seed", seed_of, long=True)
    for name in answer_columns(entries):
        yield EntryColumn(name, partial(answer_cell, document, column=name), long=True)
    if any(map(named_kind, entries)):
        yield EntryColumn("kind", lambda entry: named_kind(entry) or "–", long=True)
    if numbers := device_numbers(document.devices):
        yield EntryColumn("on", lambda entry: numbers[entry.device])
    yield EntryColumn("cause", cause_of)
    if any(entry.harm for entry in entries):
        yield EntryColumn("right", lambda entry: who_was_right(entry) or "–")
    yield EntryColumn("strength", lambda entry: number(entry.strength, 3), number=True)
    if document.replay is None:
        yield EntryColumn("queries", lambda entry: f"{entry.queries:,}", number=True)
    yield EntryColumn("dB", show_nearness, number=True)
