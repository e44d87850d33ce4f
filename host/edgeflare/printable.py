"""Text of documents as it may reach a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Return a text in one line with every character that does not print as its escape.

    Control characters, among them those that begin a terminal's commands, and marks that change
    the direction of writing become what Python writes for them, such as `\x1b`.
    """
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )
