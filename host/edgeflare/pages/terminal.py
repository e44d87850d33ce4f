"""A page on a terminal: the result first, then its sections in brief."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from edgeflare.pages.facts import shortened
from edgeflare.pages.page import (
    MARKS,
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

LONGEST_WORD = 16
"""Characters of a word that is not broken where there is any room."""

LONGEST_FIGURE = 32
"""Characters of a figure with its interval; a longer text is no number, wherever it stands."""

FOLDED = 10
"""Characters that a column of longer words has at least, where the terminal is narrow."""

CELL = 80
"""Characters of a cell that are shown; a text may have thousands."""

_USUAL = 80
"""Characters of a terminal for which a page says how many of its texts are shown."""

_BETWEEN = 2
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
    checks = [_text(f"{MARKS[check.mark]} {check.name} {check.words}") for check in page.checks]
    about = f"{page.kind}: {page.name}{f' on {page.on}' if page.on else ''}"
    parts: list[RenderableType] = [_text(about, "dim"), _text(page.lead, "bold")]
    parts += [*map(_text, page.words), *checks]
    parts += [_text(f"warning: {warning}", "yellow") for warning in page.warnings]
    for section in page.sections:
        parts += _section_parts(section, console.width)
    console.print(Group(*parts, *(["", *checks] if checks else [""])))
    # As one line, whatever the width, so that the command can be copied.
    shown = f"Everything is in {where}; see it: edgeflare report {quote(where)} --html"
    console.print(_text(shown, "dim"), soft_wrap=True)


def print_section(console: Console, section: Section) -> None:
    """Print a section alone; nothing of one that is not brief, or has nothing."""
    if parts := _section_parts(section, console.width):
        console.print(Group(*parts[1:]))


def print_blocks(console: Console, *blocks: Block) -> None:
    """Print blocks alone, such as a table that is all that a command says."""
    console.print(Group(*_block_parts(filter(None, blocks), console.width)))


def _section_parts(section: Section, width: int) -> list[RenderableType]:
    """Return what is printed of a section; nothing of one that is not brief, or has nothing.

    Args:
        section: what is printed.
        width: width of the terminal, in characters.

    """
    parts = _block_parts(section.brief_blocks(), width)
    return ["", _text(section.title, "bold"), *parts] if parts else []


def _block_parts(blocks: Iterable[Block], width: int) -> list[RenderableType]:
    """Return what is printed of blocks, with an empty line between two."""
    parts: list[RenderableType] = []
    for block in blocks:
        parts += [*([""] if parts else []), *_PARTS[block.kind](block, width)]
    return parts


def _sentences(block: Sentences, _width: int) -> Iterator[RenderableType]:
    yield from map(_text, block.sentences)


def _bullets(block: Bullets, width: int) -> Iterator[RenderableType]:
    shown = block.sentences[: block.most]
    most = _characters(block.brief, width)
    yield from (_text(f"• {shortened(line, most or len(line))}") for line in shown)
    if more := len(block.sentences) - len(shown):
        yield _text(f"and {more:,} more", "dim")


def _facts(block: Facts | KeyFigures, _width: int) -> Iterator[RenderableType]:
    grid = RichTable.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, value in block.rows:
        grid.add_row(_text(name), _text(value))
    yield grid


def _cards(block: Cards, width: int) -> Iterator[RenderableType]:
    most = _characters(block.brief, width)
    grid = RichTable.grid(padding=(0, 1))
    grid.add_column(justify="right", style="bold")
    grid.add_column(overflow="fold")
    for card in block.cards[: block.most]:
        grid.add_row(card.number, _text(shortened(card.title, most or len(card.title))))
        if under := "; ".join(f"{name}: {value}" for name, value in card.facts):
            grid.add_row("", _text(under, "dim"))
    yield grid
    if (more := len(block.cards) - block.most) > 0:
        yield _text(f"and {more:,} more", "dim")


def _table_parts(block: Table, width: int) -> Iterator[RenderableType]:
    """Yield a table; where it is too wide, each interval stands below its estimate.

    A column for which there is no room then is left out, before a word is broken, and named below.

    Args:
        block: what is printed.
        width: width of the terminal, in characters.

    """
    most = min(CELL, _characters(block.brief, width) or CELL)
    columns = [
        _TerminalColumn(
            place,
            printable(head),
            [printable(block.cut_cell(cell, most)) for cell in cells],
            place >= block.numbers_from and max(map(cell_len, map(str, cells))) <= LONGEST_FIGURE,
        )
        for place, (head, *cells) in enumerate(zip(block.header, *block.listed(), strict=True))
    ]
    if _width(column.longest for column in columns) > width:
        columns = [column.stacked() if column.number else column for column in columns]
    left_out = _left_out(columns, block.missed_least, width)
    shown = [column for column in columns if column not in left_out]
    if title := block.brief_title():
        yield _text(title, "bold" if block.title else "dim")
    yield _table(shown, width)
    named = [f"no room for: {', '.join(column.name for column in left_out)}"] if left_out else []
    for line in (*named, *filter(None, [block.note])):
        yield Padding(_text(line, "dim"), (0, 0, 0, 2))


def _characters(brief: int | None, width: int) -> int | None:
    """Return how many characters are shown of what has so many where there are 80; None for all."""
    return None if brief is None else brief + max(0, width - _USUAL)


def _left_out(
    columns: Sequence[_TerminalColumn], missed_least: Sequence[str], width: int
) -> list[_TerminalColumn]:
    """Return the columns for which there is no room: those missed least, then the last figures."""
    missed = [column for name in missed_least for column in columns if column.name == name]
    figures = [column for column in reversed(columns[1:]) if column.number]
    left, out = list(columns), []
    for column in dict.fromkeys(missed + figures):
        if len(left) <= _FEWEST or _width(wide.least for wide in left) <= width:
            break
        left.remove(column)
        out.append(column)
    return out


@dataclass(frozen=True, slots=True)
class _TerminalColumn:
    """A column of a table: its place, heading and cells, and whether these are numbers."""

    place: int
    header: str
    cells: Sequence[str] = field(compare=False)
    number: bool

    @property
    def name(self) -> str:
        """The heading as one line."""
        return " ".join(self.header.split())

    @property
    def longest(self) -> int:
        """The width of its longest line."""
        return max(
            cell_len(line) for text in (self.header, *self.cells) for line in text.split("\n")
        )

    @property
    def least(self) -> int:
        """The width that it needs, in which no number is broken, and of words only long ones."""
        words = [word for text in (self.header, *self.cells) for word in text.split()]
        longest = max(map(cell_len, words), default=0)
        if self.number:
            return self.longest
        return longest if longest <= LONGEST_WORD else FOLDED

    def stacked(self) -> _TerminalColumn:
        """Return it with a word of the heading a line, and intervals below their estimates."""
        cells = [cell.replace(" (", "\n(") for cell in self.cells]
        return _TerminalColumn(self.place, self.header.replace(" ", "\n"), cells, self.number)


def _width(columns: Iterable[int]) -> int:
    """Return the width of a table whose columns have these widths."""
    each = list(columns)
    return sum(each) + _BETWEEN * (len(each) - 1)


def _table(columns: Sequence[_TerminalColumn], width: int) -> RichTable:
    """Return a table: no number is broken, and no word where all columns fit."""
    table = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    fits = _width(column.least for column in columns) <= width
    shared = _shared_out(columns, width) if fits else [None] * len(columns)
    for column, own in zip(columns, shared, strict=True):
        table.add_column(
            Text(column.header),
            justify="right" if column.number else "left",
            overflow="fold",
            no_wrap=column.number or (fits and column.least == column.longest),
            width=own,
            min_width=column.least if column.number else None,
        )
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(Text, row))
    return table


def _shared_out(columns: Sequence[_TerminalColumn], width: int) -> list[int]:
    """Return the width of each column: its longest line's, or as many as all can have alike.

    None has less than it needs at least, as Rich would share out the width of a terminal.
    """
    bound = min(width, max(column.longest for column in columns))
    while True:
        widths = [min(column.longest, max(column.least, bound)) for column in columns]
        if _width(widths) <= width or bound == 0:
            break
        bound -= 1
    for place, column in enumerate(columns):
        if _width(widths) < width and widths[place] < column.longest:
            widths[place] += 1
    return widths


_PARTS: Mapping[str, Callable[[Any, int], Iterator[RenderableType]]] = {
    Sentences.kind: _sentences,
    Bullets.kind: _bullets,
    Facts.kind: _facts,
    KeyFigures.kind: _facts,
    Table.kind: _table_parts,
    Cards.kind: _cards,
}


def _text(line: str, style: str = "") -> Text:
    return Text(printable(line), style=style)
