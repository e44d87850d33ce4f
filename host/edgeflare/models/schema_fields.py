"""Where the fields of a table of a `.tflite` file lie, and what each of them is.

The generated classes of the schema know that in their accessors only, and read with it: five
seconds for a chain of twenty thousand operators. Each accessor is called once here, with a table
that notes what it is asked, so a field that a later schema adds is known without being named. Left
absent are those that cannot be known so: a union of classes that no name leads to, and texts in a
vector.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from flatbuffers import number_types  # type: ignore[import-untyped]

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


@dataclass(frozen=True)
class SchemaField:
    """A field of a class of the schema.

    Attributes:
        name: of the attribute that has it.
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
def fields_of(name: str) -> tuple[SchemaField, ...]:
    """Return the fields of a class of the schema, such as "Tensor"."""
    found = (_field(name, key) for key in vars(getattr(schema, f"{name}T")()))
    return tuple(one for one in found if one is not None)


@functools.cache
def end_of_slots(name: str) -> int:
    """Return the size of the largest layout that a class of the schema can have, in bytes."""
    first = 2 * _BYTES_OF_SLOT  # after the sizes of the layout and of the table
    return max((one.slot + _BYTES_OF_SLOT for one in fields_of(name)), default=first)


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


def _field(name: str, key: str) -> SchemaField | None:
    """Return a field of a class, None of one that is left absent."""
    table, reader = _Noting(), getattr(schema, name)()
    reader._tab = table
    accessor = key[0].upper() + key[1:]
    if hasattr(reader, f"{accessor}AsNumpy"):
        getattr(reader, f"{accessor}AsNumpy")()
        dtype = np.dtype(number_types.to_numpy_type(table.flags))
        return SchemaField(key, table.slot, _BYTES_OF_OFFSET, table.kind, dtype)
    found = getattr(reader, accessor)(*([0] if hasattr(reader, f"{accessor}Length") else []))
    if table.kind == "number":
        flags = table.flags
        return SchemaField(key, table.slot, flags.bytewidth, table.kind, flags.packer_type)
    if table.kind == "texts" or (table.kind == "union" and key not in _UNIONS):
        return None
    of: Any = None if table.kind == "text" else type(found).__name__
    if table.kind == "union":
        numbers = vars(getattr(schema, _UNIONS[key])).items()
        of = {number: one for one, number in numbers if one[0] != "_" and one != "NONE"}
    return SchemaField(key, table.slot, _BYTES_OF_OFFSET, table.kind, of)
