"""The name that a user probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_LIKENESS = 0.5
"""Of difflib: low enough for "ref" to mean "reference", too high for "zzz" to mean anything."""


def suggestion(name: str, known: Iterable[str], form: str = " (did you mean {!r}?)") -> str:
    """Return `form`, filled with the known name most like `name`; nothing where none is like it."""
    matches = get_close_matches(name, list(known), n=1, cutoff=_LIKENESS)
    return form.format(matches[0]) if matches else ""
