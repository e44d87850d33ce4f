"""A part of the page of a repair: a heading, what it is about, and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table.

    Attributes:
        title: what it is of.
        header: of its columns.
        rows: their cells; the first of each names the row.

    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class PagePart:
    """A part of the page.

    Attributes:
        name: its place in the address of the page.
        title: its heading.
        words: what its tables show, in a sentence or more.
        tables: those of them that have rows are shown.
        facts: names and values of what stands alone.

    """

    name: str
    title: str
    words: str
    tables: Sequence[PageTable]
    facts: Sequence[tuple[str, str]] = ()
