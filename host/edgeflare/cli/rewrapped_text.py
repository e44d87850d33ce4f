"""A text that was wrapped for a source file, wrapped anew for a terminal."""

from __future__ import annotations

import re
from textwrap import fill

_ITEM = re.compile(r"(?:-|\d+\.) ")
"""What an item of a list begins with."""


def rewrapped(text: str, width: int) -> str:
    """Return a text with its paragraphs and items of lists wrapped to a width.

    Args:
        text: lines of plain text, such as a docstring that `inspect.cleandoc` has read.
        width: columns.

    """
    found: list[tuple[str, str, str]] = []  # indentation, that of the lines that follow, words
    continued = ""
    for line in text.splitlines():
        words = line.strip()
        indent = line[: len(line) - len(line.lstrip())]
        item = _ITEM.match(words)
        if words and not item and found and indent == continued and found[-1][2]:
            found[-1] = (*found[-1][:2], f"{found[-1][2]} {words}")
            continue
        continued = indent + " " * (item.end() if item else 0)
        found.append((indent, continued, words))
    return "\n".join(
        fill(words, width, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)
        for first, others, words in found
    )
