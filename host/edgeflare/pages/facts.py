"""What is known of something as names and texts, and a figure to read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Final

import msgspec

from edgeflare.record.json_types import written_text

PLACES = frozenset({"original", "compressed", "seeds"})
"""Keys of a pair that are paths. A report is passed on, so it keeps their last part alone."""


def details(known: object) -> tuple[tuple[str, str], ...]:
    """Return whatever is known of something as names and texts; what is empty is left out.

    Args:
        known: a part of a document, or such parts by their names.

    """
    rows = []
    for name, value in msgspec.to_builtins(known, enc_hook=written_text).items():
        if isinstance(value, Mapping):
            rows += [(f"{name} {inner}", text) for inner, text in details(value)]
        elif value not in ("", None, [], ()):
            rows.append((name.replace("_", " "), _text(name, value)))
    return tuple(rows)


def in_words(value: str) -> str:
    """Return a word of a document as people read it: "low mean IoU" for "low-mean-iou"."""
    return " ".join(_ABBREVIATIONS.get(word, word) for word in value.split("-"))


_ABBREVIATIONS: Final = {"iou": "IoU"}


def _text(name: str, value: object) -> str:
    if name in PLACES and isinstance(value, str):
        return PurePath(value).name
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.6g}"
    if isinstance(value, int) and name != "rng_seed":
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(_text("", element) for element in value)
    return str(value)


def number(value: float | None, digits: int = 1, sign: str = "") -> str:
    """Return a figure to read, without a minus where it rounds to 0; a dash for None.

    Args:
        value: any number, or None for none.
        digits: digits behind the point.
        sign: "+" where figures that are not negative have one.

    """
    return "–" if value is None else f"{round(value, digits) + 0.0:{sign},.{digits}f}"


def significant(value: float, digits: int = 3, sign: str = "") -> str:
    """Return a figure for a sentence, of so many significant digits, without an exponent.

    Whole numbers stand in full up to 99,999, larger ones as "1.23 million". What is below a ten
    thousandth, or 1000 trillion and more, has an exponent for want of words.

    Args:
        value: any number.
        digits: significant digits that it has at least, up to 4.
        sign: "+" where positive figures have one.

    """
    figure = f"{value:{sign}.{digits}g}"
    if "e+" not in figure:
        return figure
    if round(abs(value)) <= _IN_FULL:
        return f"{value:{sign},.0f}"
    digits = max(3, digits)
    size = abs(float(f"{value:.{digits}g}"))
    if size >= _NO_WORDS:
        return figure
    unit, word = next((unit, word) for unit, word in _LARGE if size >= unit)
    return f"{value / unit:{sign}.{digits}g} {word}"


_IN_FULL: Final = 99_999
"""Whole number up to which each digit is printed."""

_LARGE: Final = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"), (1e3, "thousand"))

_NO_WORDS: Final = 1e15


def count_of(number: int, one: str, many: str = "") -> str:
    """Return how many there are of something: "1 item", "1,200 items".

    Args:
        number: how many.
        one: the word for one of them.
        many: the word for several; with an "s" where it is not given.

    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many characters, an ellipsis for what is left out.

    A figure that would be cut is left out, since what is left of it would be another one.
    """
    if len(text) <= most:
        return text
    kept = text[: most - 1]
    cut = _INSIDE_A_FIGURE.match(text, max(0, most - 2))
    return f"{(_LAST_FIGURE.sub('', kept) or kept) if cut else kept}…"


_INSIDE_A_FIGURE: Final = re.compile(r"\d[.,]?\d|[.,]\d")

_LAST_FIGURE: Final = re.compile(r"(?<![^\s(])[-+]?\d[\d.,]*$")
