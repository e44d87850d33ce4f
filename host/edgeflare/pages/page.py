"""A page: what a command says of its result, once, for every form in which that is read.

`terminal.py`, `html_page.py` and `markdown.py` show a page, each with what its readers have room
for. Texts stand in a page as they are; whoever shows them makes them safe for its medium.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import ClassVar, Final, Literal, TypeAlias, TypeVar

import msgspec

from edgeflare.pages.facts import shortened

Mark: TypeAlias = Literal["pass", "fail", "attention"]
"""How something ended: a gate, or the result of a command."""

MARKS: Final[Mapping[Mark, str]] = {"pass": "✔", "fail": "✖", "attention": "?"}
"""What stands for a mark."""

Row: TypeAlias = "Sequence[str | TableCell]"

_Thing = TypeVar("_Thing")

LISTED = 5
"""Most names that a row lists of the things that share it."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What a command says of its result.

    Attributes:
        kind: what the page is, such as "EdgeFlare survey".
        name: name of what it is about: a pair, or a device.
        on: the devices, where `name` is none; empty where it is.
        question: what it answers; the name where it has no question.
        mark: how it ended; None where nothing was asked that could fail.
        lead: the result in a sentence, without its full stop.
        words: further sentences, which are read at once.
        checks: the gates that were asked for.
        warnings: what makes the result less than it seems, the worst first.
        sections: parts of the page.
        source: the name of the document that it was made from.
        version: version of EdgeFlare that made that document.

    """

    kind: str
    name: str
    on: str = ""
    question: str = ""
    mark: Mark | None
    lead: str
    words: Sequence[str] = ()
    checks: Sequence[CheckLine] = ()
    warnings: Sequence[str] = ()
    sections: Sequence[Section]
    source: str
    version: str


class CheckLine(msgspec.Struct, frozen=True):
    """A gate: how it ended, its name, and why."""

    mark: Mark
    name: str
    words: str


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a page.

    Attributes:
        id: anchor of the part in the address of the page.
        title: heading of the part.
        words: what it shows, for who has room to read it.
        blocks: what it consists of. It is left out where none of them has anything.
        brief: whether it is shown where there is little room, on a terminal and in Markdown.
        count: how many things it is of, where that is worth a figure beside its heading.

    """

    id: str
    title: str
    words: str = ""
    blocks: Sequence[Block]
    brief: bool = True
    count: int | None = None

    def brief_blocks(self) -> list[Block]:
        """Return what is shown where there is little room; nothing if it is not brief."""
        shown = (
            block.instead if isinstance(block, Illustration) else block for block in self.blocks
        )
        return [part for part in shown if part] if self.brief else []


class Sentences(msgspec.Struct, frozen=True):
    """Sentences, a paragraph each."""

    kind: ClassVar[str] = "sentences"
    sentences: Sequence[str]

    def __bool__(self) -> bool:
        return bool(self.sentences)


class Bullets(msgspec.Struct, frozen=True):
    """Sentences that stand for themselves, a list.

    Attributes:
        sentences: the items of the list, in their order.
        most: how many a terminal lists; None for all.
        brief: characters that a terminal of 80 shows of each, a wider one more; None for all.

    """

    kind: ClassVar[str] = "bullets"
    sentences: Sequence[str]
    most: int | None = None
    brief: int | None = None

    def __bool__(self) -> bool:
        return bool(self.sentences)


class Facts(msgspec.Struct, frozen=True):
    """Names and values."""

    kind: ClassVar[str] = "facts"
    title: str
    rows: Sequence[tuple[str, str]]

    def __bool__(self) -> bool:
        return bool(self.rows)


class KeyFigures(msgspec.Struct, frozen=True):
    """Names and values by which results are compared.

    Attributes:
        rows: a name and a value each; most values begin with a number, which is what is compared.
        small: the names of values that say several things of one rank.

    """

    kind: ClassVar[str] = "key figures"
    rows: Sequence[tuple[str, str]]
    small: Collection[str] = ()

    def __bool__(self) -> bool:
        return bool(self.rows)


class TableCell(msgspec.Struct, frozen=True):
    """A cell that says more than its text.

    Attributes:
        text: what stands in it.
        title: the same in a sentence.
        mark: the name of its colour in the style sheet.
        below: a second line, such as an interval.
        shade: how strong its colour is, from 0 to 100.

    """

    text: str
    title: str = ""
    mark: str = ""
    below: str = ""
    shade: float | None = None

    def __str__(self) -> str:
        return f"{self.text} ({self.below})" if self.below else self.text


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table.

    Attributes:
        title: what it is of.
        header: the names of its columns.
        rows: their cells; the first of each names the row.
        note: what holds for its figures, such as the confidence of intervals.
        numbers_from: the first column of numbers, which stand to the right.
        count: how many rows there are, where `rows` are but the first; 0 where they are all.
        most: rows that are listed where there is little room; None for all.
        order: word for the rows that come first, such as "worst".
        kept: names of rows that are listed in any case.
        missed_least: names of columns in the order in which they are left out on a terminal that
            is too narrow.
        whole: whether long cells are shown in full everywhere, such as commands to type.
        brief: characters of a cell on a terminal of 80, more on a wider one; None for what it has
            room for.

    """

    kind: ClassVar[str] = "table"
    title: str
    header: Sequence[str]
    rows: Sequence[Row]
    note: str = ""
    numbers_from: int = 1
    count: int = 0
    most: int | None = None
    order: str = "first"
    kept: Collection[str] = ()
    missed_least: Sequence[str] = ()
    whole: bool = False
    brief: int | None = None

    def __bool__(self) -> bool:
        return bool(self.rows)

    @classmethod
    def of_words(
        cls, header: Sequence[str], rows: Sequence[Row], *, title: str = "", note: str = ""
    ) -> Table:
        """Return a table without figures, whose cells are shown in full."""
        return cls(
            title=title, header=header, rows=rows, note=note, numbers_from=len(header), whole=True
        )

    def listed(self) -> Sequence[Row]:
        """Return the rows where there is little room; one alone is not cut off."""
        if self.most is None or self._count() <= self.most + 1:
            return self.rows
        further = (row for row in self.rows[self.most :] if str(row[0]) in self.kept)
        return [*self.rows[: self.most], *further]

    def rest(self) -> str:
        """Return in words which of the rows are listed where there is little room; or nothing."""
        listed = len(self.listed())
        if self.most is None or listed == self._count():
            return ""
        kept = f" and {listed - self.most} more" if listed > self.most else ""
        return f"the {self.order} {self.most} of {self._count():,}{kept}"

    def _count(self) -> int:
        return self.count or len(self.rows)

    def cut_cell(self, cell: str | TableCell, most: int) -> str:
        """Return a cell where there is room for so many characters."""
        return str(cell) if self.whole else shortened(str(cell), most)

    def brief_title(self) -> str:
        """Return the title where there is little room, with which of the rows are listed."""
        return ", ".join(filter(None, (self.title, self.rest())))


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One of several things that are looked at one by one, such as a finding.

    Attributes:
        id: anchor of the card in the address of the page.
        number: number by which it is known; empty for none.
        title: what it is.
        chips: words about it, each with the name of its colour in the style sheet.
        facts: names and values by which cards are compared.
        words: sentences.
        folded: what is shown where it is asked for, by a heading.

    """

    id: str
    number: str = ""
    title: str
    chips: Sequence[tuple[str, str]] = ()
    facts: Sequence[tuple[str, str]] = ()
    words: Sequence[str] = ()
    folded: Sequence[tuple[str, Sequence[Block]]] = ()


class Cards(msgspec.Struct, frozen=True):
    """Cards side by side; where there is little room, `most` of them as lines.

    Attributes:
        cards: the cards, in their order.
        most: cards that are lines there.
        noun: what one of them is.
        brief: characters of a title on a terminal of 80, more on a wider one; None for all.

    """

    kind: ClassVar[str] = "cards"
    cards: Sequence[Card]
    most: int = 12
    noun: str = ""
    brief: int | None = None

    def __bool__(self) -> bool:
        return bool(self.cards)


class Illustration(msgspec.Struct, frozen=True, dict=True):
    """What only a browser shows, such as charts and pictures.

    Attributes:
        draw: makes it, as HTML that is safe; nothing where there is nothing to see.
        instead: what is shown where there is no browser; None for nothing.

    """

    kind: ClassVar[str] = "illustration"
    draw: Callable[[], str]
    instead: Block | None = None

    def __bool__(self) -> bool:
        return bool(self.drawn)

    @cached_property
    def drawn(self) -> str:
        """Markup of the illustration, made once."""
        return self.draw()


Block: TypeAlias = Sentences | Bullets | Facts | KeyFigures | Table | Cards | Illustration


def row_groups(things: Iterable[_Thing], said: Callable[[_Thing], Hashable]) -> list[list[_Thing]]:
    """Group things of which the same is said; groups and things are in the order of the things.

    So the first of each group is its example: the strongest, where the strongest are first.

    Args:
        things: what the table is of, such as findings.
        said: returns what its row says of one, without figures in which any two differ.

    """
    groups: dict[Hashable, list[_Thing]] = {}
    for thing in things:
        groups.setdefault(said(thing), []).append(thing)
    return list(groups.values())


def listed(names: Sequence[object]) -> str:
    """Return the names of what shares a row; of many the first, and how many more there are."""
    first = ", ".join(map(str, names[:LISTED]))
    more = len(names) - LISTED
    return f"{first} and {more} more" if more > 0 else first
