"""Text from outside, such as names of classes, pairs and files, made safe for where it is shown.

Runs, pairs and models are passed on between people. A name may hold codes that a terminal obeys,
a formula that a spreadsheet computes, or what breaks out of its place in XML, HTML or Markdown.
There is one function for each medium; HTML is escaped by its templates besides.
"""

from __future__ import annotations

import re
from typing import Final

_REPLACED: Final = "\N{REPLACEMENT CHARACTER}"

_CONTROLS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1, but for tab and line feed
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # the direction of text
    "\u2028\u2029\ud800-\udfff]"  # separators of lines and paragraphs; half characters
)

_NOT_IN_XML: Final = re.compile("[\ufffe\uffff]")
"""What must not stand in XML 1.0, not even escaped, beside control characters."""

_NOT_IN_JSON: Final = re.compile(_CONTROLS.pattern.replace("\r", ""))
"""Control characters but for those between values, which JSON itself has escaped in strings."""

_RIGHT_TO_LEFT: Final = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
"""Blocks of scripts that are written so, such as Hebrew and Arabic."""

_ARROW: Final = "\N{LEFT-TO-RIGHT MARK} → \N{LEFT-TO-RIGHT MARK}"

_MARKUP: Final = re.compile(r"([\\`*_\[\]<>|~$&])")

_LINK: Final = re.compile(r"(?<=\w):(?=//)|(?<=www)\.", re.IGNORECASE)
"""What GitHub makes a link of by itself."""

_BEGINNING: Final = re.compile(r"^(\d{0,9})([-+.)](?=\s|$)|#(?=#{0,5}(?:\s|$))|[-=](?=[-= ]*$))")
"""What begins a list, a heading or a rule."""

_FORMULA: Final = re.compile('^(?=[\t\r\n])|(?:^|[;\t\n]"*)(?=[=+\\-@\uff1d\uff0b\uff0d\uff20])')
"""Where a formula of a spreadsheet begins, in wide forms too (OWASP, CSV Injection).

A spreadsheet whose cells are separated by semicolons or tabs sees no quotes in the middle of what
it takes for a cell, so a line feed or such a separator in a name begins a cell of its own there.
"""


def for_terminal(text: str) -> str:
    """Return text without what a terminal would obey; line feeds and tabs stay."""
    return _CONTROLS.sub(_REPLACED, text)


def printable(text: str) -> str:
    r"""Return a name for a line or a cell, with what does not print as its escape.

    Control characters, among them those that begin a terminal's commands, and marks that change
    the direction of writing become what Python writes for them, such as `\x1b`.
    """
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def for_html(text: str) -> str:
    """Return text without control characters; templates escape its markup."""
    # What was made safe for a figure is, once more, on the page around it.
    return _arrows_in_order(_CONTROLS.sub(_REPLACED, text.replace(_ARROW, " → ")))


def for_xml(text: str) -> str:
    """Return text of characters that XML 1.0 may hold; whoever writes it escapes its markup."""
    return _NOT_IN_XML.sub(_REPLACED, _CONTROLS.sub(_REPLACED, text))


def for_markdown(text: str) -> str:
    """Return text as one line of GitHub's Markdown that reads as what it is."""
    line = " ".join(_CONTROLS.sub(_REPLACED, text).split())
    shown = _BEGINNING.sub(r"\1\\\2", _LINK.sub(r"\\\g<0>", _MARKUP.sub(r"\\\1", line)))
    return _arrows_in_order(shown)


def _arrows_in_order(text: str) -> str:
    """Return text in which what stands before an arrow is shown left of it.

    Between two names that are written from right to left, a browser sets the second one first, and
    leaves the arrow as it is: what became of what would be shown the other way round.
    """
    return text.replace(" → ", _ARROW) if _RIGHT_TO_LEFT.search(text) else text


def for_json(text: str) -> str:
    """Return a JSON document as the same document, whose strings hold no control characters."""
    return _NOT_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def for_csv(text: str) -> str:
    """Return text for a cell that no spreadsheet takes for a formula: an apostrophe before it."""
    return _CONTROLS.sub(_REPLACED, _FORMULA.sub(r"\g<0>'", text))
