"""Tables in GitHub's Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from edgeflare.untrusted_text import for_markdown


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
