"""A page as GitHub's Markdown, for the summary of a CI job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from edgeflare.pages.page import Bullets, Cards, Facts, KeyFigures, Page, Section, Sentences, Table
from edgeflare.untrusted_text import for_markdown

CARDS = 30
"""Cards that a table lists; GitHub cuts off a summary of more than 1 MiB."""

CELL = 400
"""Characters of a cell that are shown; a text may have thousands."""

_MARKS = {"pass": "✅", "fail": "❌", "attention": "⚠️"}


def markdown_page(page: Page) -> str:
    """Return a page as Markdown (GitHub's flavour)."""
    return "\n\n".join(_parts(page)) + "\n"


def markdown_section(section: Section) -> str:
    """Return a section alone as a document."""
    return "\n\n".join(_section(section, "##")) + "\n"


def _parts(page: Page) -> Iterator[str]:
    yield f"## {for_markdown(page.kind)}: {for_markdown(page.name)}"
    mark = "" if page.mark is None else f"{_MARKS[page.mark]} "
    yield f"{mark}{for_markdown(page.lead)}."
    yield from map(for_markdown, page.words)
    yield from (f"> [!WARNING]\n> {for_markdown(warning)}" for warning in page.warnings)
    yield from (
        f"{_MARKS[check.mark]} {for_markdown(f'{check.name} {check.words}')}"
        for check in page.checks
    )
    for section in page.sections:
        yield from _section(section, "###")


def _section(section: Section, level: str) -> list[str]:
    """Return a section with its heading; nothing of one that is not brief, or has nothing."""
    parts = [
        part
        for brief_block in section.brief_blocks()
        for part in _PARTS[brief_block.kind](brief_block)
    ]
    return [f"{level} {for_markdown(section.title)}", *parts] if parts else []


def _sentences(block: Sentences) -> Iterator[str]:
    yield " ".join(map(for_markdown, block.sentences))


def _bullets(block: Bullets) -> Iterator[str]:
    yield "\n".join(f"- {for_markdown(sentence)}" for sentence in block.sentences)


def _facts(block: Facts | KeyFigures) -> Iterator[str]:
    yield markdown_table(("", ""), block.rows)


def _table(block: Table) -> Iterator[str]:
    if title := block.brief_title():
        yield f"**{for_markdown(title)}**"
    rows = [[block.cut_cell(cell, CELL) for cell in row] for row in block.listed()]
    yield markdown_table(block.header, rows, block.numbers_from)
    if block.note:
        yield for_markdown(block.note)


def _cards(block: Cards) -> Iterator[str]:
    names = list(dict.fromkeys(name for card in block.cards for name, _ in card.facts))
    rows = [
        (card.number, card.title, *(dict(card.facts).get(name, "–") for name in names))
        for card in block.cards[:CARDS]
    ]
    yield markdown_table(("", block.noun, *names), rows)
    if (more := len(block.cards) - CARDS) > 0:
        yield f"and {more:,} more"


_PARTS: Mapping[str, Callable[[Any], Iterator[str]]] = {
    Sentences.kind: _sentences,
    Bullets.kind: _bullets,
    Facts.kind: _facts,
    KeyFigures.kind: _facts,
    Table.kind: _table,
    Cards.kind: _cards,
}


def markdown_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], numbers_from: int | None = None
) -> str:
    """Return a table.

    Args:
        header: the names of the columns.
        rows: cells, text that reads as what it is.
        numbers_from: the first column of numbers, which stand to the right; None for none.

    """
    texts = len(header) if numbers_from is None else numbers_from
    lines = [map(for_markdown, header), ["---"] * texts + ["--:"] * (len(header) - texts)]
    lines += [map(for_markdown, cells) for cells in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
