"""Which settings of a pair are others on its device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from edgeflare.models.pair_interface import PairInterface


def other_settings(interface: PairInterface) -> tuple[str, ...]:
    """Return the settings that a device has of its own, such as "channels bgr instead of rgb"."""
    if interface.device is None:
        return ()
    of_pair, here = (
        msgspec.to_builtins(replace(one.described(), device=None))
        for one in (interface, interface.on_device)
    )
    return tuple(dict.fromkeys(_others(of_pair, here)))  # a table may be told twice


def _others(of_pair: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    """Yield what differs between two tables, by the innermost keys."""
    for key in dict.fromkeys((*of_pair, *here)):
        one, other = of_pair.get(key), here.get(key)
        if isinstance(one, dict) or isinstance(other, dict):
            yield from _others(one or {}, other or {})
        elif tables := _tables(one, other):
            for first, second in tables:
                yield from _others(first, second)
        elif one != other:
            yield f"{key} {_written(other)} instead of {_written(one)}"


def _tables(one: Any, other: Any) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the tables of two lists of as many by pairs; none where they are others."""
    if not (isinstance(one, list | tuple) and isinstance(other, list | tuple)):
        return []
    both = list(zip(one, other, strict=False))
    alike = len(one) == len(other) and all(isinstance(its, dict) for its in (*one, *other))
    return both if alike else []


def _written(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(_written, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
