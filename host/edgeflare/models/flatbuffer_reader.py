"""The tables of a `.tflite` file as objects, read fast and no more often than a file has room for.

A file may be a stranger's. Tables of a flatbuffer may be shared or lie over each other, so a small
file can unpack to any number of objects and texts: whatever is read is counted.

Where the fields of a table of a `.tflite` file lie, and what each of them is. The generated classes
of the schema know that in their accessors only, and read with it: five seconds for a chain of
twenty thousand operators. Each accessor is called once here, with a table that notes what it is
asked, so a field that a later schema adds is known without being named. Left absent are those that
cannot be known so: a union of classes that no name leads to, and texts in a vector.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, Final

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from flatbuffers import number_types  # type: ignore[import-untyped]
from numpy.typing import NDArray

_BYTES_OF_OFFSET: Final = 4
_BYTES_OF_SLOT: Final = 2

_UNIONS: Final = {
    "builtinOptions": "BuiltinOptions",
    "builtinOptions2": "BuiltinOptions2",
    "details": "QuantizationDetails",
    "arraySegments": "SparseIndexVector",
    "arrayIndices": "SparseIndexVector",
}
"""What numbers the classes of a field that may be a table of several ones."""

_MOST_TABLES: Final = 2**18
"""Most tables of a file, of all classes together."""

_MOST_PARTS: Final = 3 * 2**15
"""Tensors, operators and graphs of a file: forty-nine thousand operators that make a tensor each.

Of the crafted files of 4 MB that were tried, the slowest took 2.3 seconds, with the other bounds.
"""

_PARTS: Final = frozenset({"Tensor", "Operator", "SubGraph"})
"""Classes whose tables take the longest to read and to check."""

MOST_READINGS: Final = 3
"""How often each byte of a file may be read, in the mean. Files of converters are read once at
most."""

_FEW_BYTES: Final = 2**15
"""Bytes that may be read of a file of any size."""

_MOST_LAYOUTS: Final = 2**12
"""Most layouts of a file's tables: those of a class that have the same fields share one.
Converters' files have about thirty."""

_OFFSET: Final = Struct("<I")
"""Format of an offset to a table or a vector, and of the length of a vector."""

_BACK: Final = Struct("<i")
"""Format of the way back from a table to its layout."""

_SLOT: Final = Struct("<H")
"""Format of an entry of a layout: where in the table a field lies, 0 for one that is absent. The
first entry is the layout's size."""


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
        absent: default of each attribute, for where the file has none.
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
        size = min(_SLOT.unpack_from(content, layout)[0], _end_of_slots(name))
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
        for slot in fields_of(name):
            known = slot.slot + _SLOT.size <= len(layout)
            place = _SLOT.unpack_from(layout, slot.slot)[0] if known else 0
            if place and slot.kind == "union":
                plan.unions.append((slot.name, slot.of, place))
            elif place:
                plan.present.append((slot.name, self._reading(slot), place))
            plan.width += slot.width if place else 0
        self._plans[name, layout] = plan
        return plan

    def _reading(self, slot: _SchemaField) -> Callable[[int], Any]:
        """Return what reads a field that lies at a place."""
        content, of = self._content, slot.of
        if slot.kind == "number":
            return lambda at: of.unpack_from(content, at)[0]
        if slot.kind == "text":
            return self._text
        if slot.kind == "numbers":
            return functools.partial(self._numbers, of)
        return functools.partial(self.table if slot.kind == "table" else self._all_tables, of)

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


@dataclass(frozen=True)
class _SchemaField:
    """A field of a class of the schema.

    Attributes:
        name: name of the attribute that has it.
        slot: where a layout of the class says where in a table the field lies.
        width: what it takes in the table, in bytes.
        kind: "number", "text", "table", "union", or "numbers" or "tables", which are vectors.
        of: the struct of a number, the dtype of numbers, the class's name of a table or of tables,
            or the classes' names of a union by their numbers; None of a text.

    """

    name: str
    slot: int
    width: int
    kind: str
    of: Any


@functools.cache
def fields_of(name: str) -> tuple[_SchemaField, ...]:
    """Return the fields of a class of the schema, such as "Tensor"."""
    found = (_field(name, key) for key in vars(getattr(schema, f"{name}T")()))
    return tuple(known for known in found if known is not None)


@functools.cache
def _end_of_slots(name: str) -> int:
    """Return the size of the largest layout that a class of the schema can have, in bytes."""
    first = 2 * _BYTES_OF_SLOT  # after the sizes of the layout and of the table
    return max((slot.slot + _BYTES_OF_SLOT for slot in fields_of(name)), default=first)


class _Noting:
    """A table for accessors of the generated classes, which notes what they ask it for."""

    Bytes, Pos = b"", 0

    def __init__(self) -> None:
        self.slot, self.kind = 0, "table"
        self.flags: Any = None

    def Offset(self, slot: int) -> int:  # noqa: N802 - the names of flatbuffers
        self.slot = slot
        return 1

    def Get(self, flags: Any, _: int) -> int:  # noqa: N802
        self.kind, self.flags = "number", flags
        return 0

    def GetVectorAsNumpy(self, flags: Any, _: int) -> None:  # noqa: N802
        self.kind, self.flags = "numbers", flags

    def String(self, _: int) -> bytes:  # noqa: N802
        self.kind = "texts" if self.kind == "tables" else "text"
        return b""

    def Union(self, _: Any, __: int) -> None:  # noqa: N802
        self.kind = "union"

    def Vector(self, _: int) -> int:  # noqa: N802
        self.kind = "tables"
        return 0

    def Indirect(self, _: int) -> int:  # noqa: N802
        return 0


def _field(name: str, key: str) -> _SchemaField | None:
    """Return a field of a class, None of one that is left absent."""
    table, reader = _Noting(), getattr(schema, name)()
    reader._tab = table
    accessor = key[0].upper() + key[1:]
    if hasattr(reader, f"{accessor}AsNumpy"):
        getattr(reader, f"{accessor}AsNumpy")()
        dtype = np.dtype(number_types.to_numpy_type(table.flags))
        return _SchemaField(key, table.slot, _BYTES_OF_OFFSET, table.kind, dtype)
    found = getattr(reader, accessor)(*([0] if hasattr(reader, f"{accessor}Length") else []))
    if table.kind == "number":
        flags = table.flags
        return _SchemaField(key, table.slot, flags.bytewidth, table.kind, flags.packer_type)
    if table.kind == "texts" or (table.kind == "union" and key not in _UNIONS):
        return None
    of: Any = None if table.kind == "text" else type(found).__name__
    if table.kind == "union":
        numbers = vars(getattr(schema, _UNIONS[key])).items()
        of = {
            number: constant
            for constant, number in numbers
            if constant[0] != "_" and constant != "NONE"
        }
    return _SchemaField(key, table.slot, _BYTES_OF_OFFSET, table.kind, of)
