"""A page on a terminal: the result first, then its sections in brief."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from edgeflare.pages.page import (
    Block,
    Bullets,
    Cards,
    Facts,
    KeyFigures,
    Page,
    Section,
    Sentences,
    Table,
)
from edgeflare.untrusted_text import printable

MARKS = {"pass": "✔", "fail": "✖", "attention": "?"}

LONGEST_NAME = 24
"""Characters of a name in the first column that is kept on one line."""

LONGEST_WORD = 16
"""Characters of a cell in another column that is, likewise."""

CELL = 80
"""Characters of a cell that are shown; a text may have thousands."""

_BETWEEN = 3
"""Characters that each column takes beside its cells."""

_FEWEST = 2
"""Columns that are left in a table, however narrow the terminal: names and one figure."""


def print_page(console: Console, page: Page, where: str) -> None:
    """Print a page; its checks are said again at the end, below the tables.

    Args:
        console: where to.
        page: what is printed.
        where: the folder of its document, as the user knows it.

    """
    checks = [_text(f"{MARKS[one.mark]} {one.name} {one.words}") for one in page.checks]
    parts: list[RenderableType] = [_text(page.lead, "bold"), *map(_text, page.words), *checks]
    parts += [_text(f"warning: {one}", "yellow") for one in page.warnings]
    for section in page.sections:
        parts += section_parts(section, console.width)
    console.print(Group(*parts, *(["", *checks] if checks else [""])))
    # As one line, whatever the width, so that the command can be copied.
    shown = f"Everything is in {where}; see it: edgeflare report {where} --html"
    console.print(Text(shown, style="dim"), soft_wrap=True)


def print_section(console: Console, section: Section) -> None:
    """Print a section alone; nothing of one that is not brief, or has nothing."""
    console.print(Group(*section_parts(section, console.width)))


def print_blocks(console: Console, *blocks: Block) -> None:
    """Print blocks alone, such as a table that is all that a command says."""
    console.print(Group(*_block_parts(filter(None, blocks), console.width)))


def section_parts(section: Section, width: int) -> list[RenderableType]:
    """Return what is printed of a section; nothing of one that is not brief, or has nothing.

    Args:
        section: what is printed.
        width: of the terminal, in characters.

    """
    parts = _block_parts(section.brief_blocks(), width)
    return ["", _text(section.title, "bold"), *parts] if parts else []


def _block_parts(blocks: Iterable[Block], width: int) -> list[RenderableType]:
    return [part for one in blocks for part in _PARTS[one.kind](one, width)]


def _lines(block: Sentences, _width: int) -> Iterator[RenderableType]:
    yield from map(_text, block.sentences)


def _bullets(block: Bullets, _width: int) -> Iterator[RenderableType]:
    yield from (_text(f"• {one}") for one in block.sentences)


def _facts(block: Facts | KeyFigures, _width: int) -> Iterator[RenderableType]:
    grid = RichTable.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, value in block.rows:
        grid.add_row(_text(name), _text(value))
    yield grid


def _cards(block: Cards, _width: int) -> Iterator[RenderableType]:
    grid = RichTable.grid(padding=(0, 1))
    grid.add_column(justify="right", style="bold")
    grid.add_column(overflow="fold")
    for card in block.cards[: block.most]:
        grid.add_row(card.number, _text(card.title))
        if under := "; ".join(f"{name}: {value}" for name, value in card.facts):
            grid.add_row("", _text(under, "dim"))
    yield grid
    if (more := len(block.cards) - block.most) > 0:
        yield _text(f"and {more:,} more", "dim")


def table_parts(block: Table, width: int) -> Iterator[RenderableType]:
    """Yield a table; where it is too wide, each interval stands below its estimate.

    A column for which there is no room then is left out, before a word is broken, and named below.

    Args:
        block: what is printed.
        width: of the terminal, in characters.

    """
    columns = [
        [printable(block.brief_cell(cell, CELL)) for cell in column]
        for column in zip(block.header, *block.listed(), strict=True)
    ]
    if _width(columns) > width:
        columns[block.numbers_from :] = map(_stacked, columns[block.numbers_from :])
    left_out: list[str] = []
    numbers = [place >= block.numbers_from for place in range(len(columns))]
    while _width(columns) > width and len(columns) > _FEWEST and (least := _least(columns, block)):
        left_out.append(_name(columns[least]))
        del columns[least], numbers[least]
    table = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0))
    for header, number, whole in zip(columns, numbers, _whole(columns, width), strict=True):
        table.add_column(
            Text(header[0]),
            justify="right" if number else "left",
            overflow="fold",
            no_wrap=whole,
        )
    for row in zip(*(cells for _, *cells in columns), strict=True):
        table.add_row(*map(Text, row))
    if title := block.brief_title():
        yield Text.assemble("\n", (printable(title), "bold" if block.title else "dim"))
    yield table
    left = [f"no room for: {', '.join(left_out)}"] if left_out else []
    for line in (*left, *filter(None, [block.note])):
        yield Padding(_text(line, "dim"), (0, 0, 0, 2))


def _stacked(column: Sequence[str]) -> list[str]:
    """Return a column of figures whose header is a word a line, and its intervals a line below."""
    header, *cells = column
    return [header.replace(" ", "\n"), *(cell.replace(" (", "\n(") for cell in cells)]


def _width(columns: Sequence[Sequence[str]]) -> int:
    """Return how wide a table is in which no word is broken."""
    return sum(
        max(len(line) for cell in column for line in cell.split("\n")) + _BETWEEN
        for column in columns
    )


def _whole(columns: Sequence[Sequence[str]], width: int) -> list[bool]:
    """Return which columns are kept on one line: those of short words, if there is room for all."""
    short = [
        _width([cells[1:]]) - _BETWEEN <= (LONGEST_WORD if place else LONGEST_NAME)
        for place, cells in enumerate(columns)
    ]
    kept = [column for column, is_short in zip(columns, short, strict=True) if is_short]
    return short if _width(kept) <= width else [short[0], *(False for _ in short[1:])]


def _least(columns: Sequence[Sequence[str]], block: Table) -> int:
    """Return the place of the column that is missed least; 0 where none may be left out."""
    headers = list(map(_name, columns))
    return next((headers.index(one) for one in block.missed_least if one in headers), 0)


def _name(column: Sequence[str]) -> str:
    """Return the header of a column as one line."""
    return " ".join(column[0].split())


_PARTS: Mapping[str, Callable[[Any, int], Iterator[RenderableType]]] = {
    Sentences.kind: _lines,
    Bullets.kind: _bullets,
    Facts.kind: _facts,
    KeyFigures.kind: _facts,
    Table.kind: table_parts,
    Cards.kind: _cards,
}


def _text(line: str, style: str = "") -> Text:
    return Text(printable(line), style=style)
