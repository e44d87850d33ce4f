"""Typed documents with other values at some of their places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

_Part = TypeVar("_Part")


def changed(part: _Part, **values: Any) -> _Part:
    """Return a part of a document with other values.

    Args:
        part: a document, a part of one, or a tuple of parts.
        values: by their places, such as `overall__deviation__low` or `gates__0__state`.

    """
    for place, value in values.items():
        part = _with(part, place.split("__"), value)
    return part


def _with(part: Any, place: list[str], value: Any) -> Any:
    if not place:
        return value
    key, *rest = place
    if isinstance(part, tuple):
        at = int(key)
        return (*part[:at], _with(part[at], rest, value), *part[at + 1 :])
    if isinstance(part, Mapping):
        return {**part, key: _with(part.get(key), rest, value)}
    made = {key: _with(getattr(part, key), rest, value)}
    if isinstance(part, msgspec.Struct):
        return msgspec.structs.replace(part, **made)
    return replace(part, **made)


def known(part: _Part | None) -> _Part:
    """Return a part of a document that is there."""
    assert part is not None
    return part
