"""Documents with a value that does not belong in its place."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

Place = tuple[str | int, ...]

VALUES: list[Any] = [
    *(None, True, 0, -1, 3, 2.5, 1e300, 10**30, float("nan"), float("inf"), "", "12"),
    *(
        "\x1b[31m",
        "\ud800",
        "/etc/passwd",
        "../x",
        "a\0b",
        "=1+1",
        "[/b]",
        [],
        [[]],
        {},
        {"a": {"b": {}}},
    ),
]


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield every place of a document, of the parts of a list the first and the last."""
    yield place
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*place, key))
    elif isinstance(value, list):
        for n in sorted({0, len(value) - 1}) if value else ():
            yield from places(value[n], (*place, n))


def damage(document: Any, place: Place, how: str, value: Any) -> Any:
    """Return the document with a value put in a place, taken from there, or put beside."""
    changed = deepcopy(document)
    if not place:
        return value
    *before, last = place
    at = changed
    for key in before:
        at = at[key]
    if how == "put":
        at[last] = value
    elif how == "take":
        del at[last]
    elif isinstance(at, dict):
        at["more"] = value
    else:
        at.insert(0, value)
    return changed
