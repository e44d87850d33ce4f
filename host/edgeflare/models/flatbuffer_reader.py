"""The tables of a `.tflite` file as objects, read fast and no more often than a file has room for.

A file may be a stranger's. Tables of a flatbuffer may be shared or lie over each other, so a small
file can unpack to any number of objects and texts: whatever is read is counted.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, Final

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.models.schema_fields import SchemaField, end_of_slots, fields_of

_MOST_TABLES: Final = 2**18
"""Of a file, of any class."""

_MOST_PARTS: Final = 3 * 2**15
"""Tensors, operators and graphs of a file: forty-nine thousand operators that make a tensor each.

Of the crafted files of 4 MB that were tried, the slowest took 2.3 seconds, with the other bounds.
"""

_PARTS: Final = frozenset({"Tensor", "Operator", "SubGraph"})
"""Classes whose tables take the longest to read and to check."""

MOST_READINGS: Final = 3
"""Of a byte of a file, in the mean. Of files of converters each byte is read once at most."""

_FEW_BYTES: Final = 2**15
"""That are read of a file of any size."""

_MOST_LAYOUTS: Final = 2**12
"""Of the tables of a file: those of a class that have the same fields share one. Converters' files
have about thirty."""

_OFFSET: Final = Struct("<I")
"""To a table or a vector; and the length of a vector."""

_BACK: Final = Struct("<i")
"""From a table to its layout."""

_SLOT: Final = Struct("<H")
"""Of a layout: where in the table a field lies, 0 for one that is absent. The first is its size."""


def unpacked_model(content: bytes) -> Any:
    """Return a file as the generated `ModelT.InitFromPackedBuf` does, and up to ten times as fast.

    Args:
        content: the file. Vectors of numbers are views of it.

    Raises:
        ValueError: it has more tables than any model, its parts have more than it has room for, or
            a vector or a text leads out of the file.
        struct.error: an offset leads out of the file.

    """
    return _Reader(content).table("Model", 0)


@dataclass
class _Plan:
    """How the tables of a class that have the same layout are read.

    Attributes:
        new: makes the object, without attributes.
        absent: its attributes where the file has none.
        present: attribute, reader and place in the table of each field that is no union.
        unions: attribute, classes by their numbers, and place in the table of each other one.
        width: what the fields take in the table, in bytes.

    """

    new: Callable[[], Any]
    absent: Mapping[str, Any]
    present: list[tuple[str, Callable[[int], Any], int]] = field(default_factory=list)
    unions: list[tuple[str, Mapping[int, str], int]] = field(default_factory=list)
    width: int = _BACK.size


class _Reader:
    """A file, and how much more of it may be read."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._bytes = _FEW_BYTES + MOST_READINGS * len(content)
        self._tables = _MOST_TABLES
        self._parts = _MOST_PARTS
        self._plans: dict[tuple[str, bytes], _Plan] = {}

    def table(self, name: str, at: int) -> Any:
        """Return the table of a class to which the offset at a place leads."""
        content = self._content
        at += _OFFSET.unpack_from(content, at)[0]
        self._tables -= 1
        if self._tables < 0:
            raise ValueError(f"it has more than {_MOST_TABLES} tables")
        layout = at - _BACK.unpack_from(content, at)[0]
        if layout < 0:
            raise ValueError("a table has no layout")
        size = min(_SLOT.unpack_from(content, layout)[0], end_of_slots(name))
        key = (name, content[layout : layout + size])
        plan = self._plans.get(key) or self._planned(*key)
        self._spend(plan.width)
        result = plan.new()
        values = result.__dict__
        values.update(plan.absent)
        for attribute, read, place in plan.present:
            values[attribute] = read(at + place)
        for attribute, classes, place in plan.unions:
            of = classes.get(values[f"{attribute}Type"])
            values[attribute] = None if of is None else self.table(of, at + place)
        return result

    def _planned(self, name: str, layout: bytes) -> _Plan:
        if len(self._plans) == _MOST_LAYOUTS:
            raise ValueError(f"its tables have more than {_MOST_LAYOUTS} layouts")
        made = getattr(schema, f"{name}T")
        plan = _Plan(functools.partial(object.__new__, made), vars(made()))
        for one in fields_of(name):
            known = one.slot + _SLOT.size <= len(layout)
            place = _SLOT.unpack_from(layout, one.slot)[0] if known else 0
            if place and one.kind == "union":
                plan.unions.append((one.name, one.of, place))
            elif place:
                plan.present.append((one.name, self._reading(one), place))
            plan.width += one.width if place else 0
        self._plans[name, layout] = plan
        return plan

    def _reading(self, one: SchemaField) -> Callable[[int], Any]:
        """Return what reads a field that lies at a place."""
        content, of = self._content, one.of
        if one.kind == "number":
            return lambda at: of.unpack_from(content, at)[0]
        if one.kind == "text":
            return self._text
        if one.kind == "numbers":
            return functools.partial(self._numbers, of)
        return functools.partial(self.table if one.kind == "table" else self._all_tables, of)

    def _spend(self, count: int) -> None:
        self._bytes -= count
        if self._bytes < 0:
            raise ValueError("it claims more tables, numbers or texts than it has room for")

    def _vector(self, at: int, width: int) -> tuple[int, int]:
        """Return where the first part of a vector lies, and how many there are."""
        at += _OFFSET.unpack_from(self._content, at)[0]
        length = _OFFSET.unpack_from(self._content, at)[0]
        self._spend(_OFFSET.size + length * width)
        if at + _OFFSET.size + length * width > len(self._content):
            raise ValueError("a vector or a text leads out of the file")
        return at + _OFFSET.size, length

    def _text(self, at: int) -> bytes:
        first, length = self._vector(at, 1)
        return self._content[first : first + length]

    def _numbers(self, dtype: np.dtype[Any], at: int) -> NDArray[Any]:
        first, length = self._vector(at, dtype.itemsize)
        return np.frombuffer(self._content, dtype, length, first)

    def _all_tables(self, name: str, at: int) -> list[Any]:
        first, length = self._vector(at, _OFFSET.size)
        if name in _PARTS:
            self._parts -= length
            if self._parts < 0:
                raise ValueError(f"it has more than {_MOST_PARTS} tensors, operators and graphs")
        return [self.table(name, first + _OFFSET.size * part) for part in range(length)]
