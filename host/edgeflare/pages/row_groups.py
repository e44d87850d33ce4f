"""Things of which a table says the same, so that they share a row."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

_Thing = TypeVar("_Thing")

LISTED = 5
"""Most names that a row lists of the things that share it."""


def row_groups(things: Iterable[_Thing], said: Callable[[_Thing], Hashable]) -> list[list[_Thing]]:
    """Group things of which the same is said; groups and things are in the order of the things.

    So the first of each group is its example: the strongest, where the strongest are first.

    Args:
        things: what the table is of, such as findings.
        said: returns what its row says of one, without figures in which any two differ.

    """
    groups: dict[Hashable, list[_Thing]] = {}
    for one in things:
        groups.setdefault(said(one), []).append(one)
    return list(groups.values())


def listed(names: Sequence[object]) -> str:
    """Return the names of what shares a row; of many the first, and how many more there are."""
    first = ", ".join(map(str, names[:LISTED]))
    more = len(names) - LISTED
    return f"{first} and {more} more" if more > 0 else first
