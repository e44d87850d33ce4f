"""Small models that ask for the shapes of their tensors while they run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from graph_writer import GraphWriter


class FlatteningModel(GraphWriter):
    """A float model under construction whose input `x` is flattened as TensorFlow's converter does.

    That is SHAPE, STRIDED_SLICE of its first size, PACK with -1, and RESHAPE.
    """

    def __init__(self, shape: tuple[int, ...], *, dynamic: bool = False) -> None:
        super().__init__()
        self.x = self.tensor("x", shape, "FLOAT32")
        if dynamic:
            self.graph.tensors[self.x].shapeSignature = [-1, *shape[1:]]

    def flatten(self, given: int, shape: tuple[int, ...]) -> int:
        """Add a flatten of a tensor of this shape, and return what it makes."""
        at = len(self.graph.tensors)
        asked = self.tensor(f"shape {at}", (len(shape),), "INT32")
        first = self.tensor(f"first {at}", (), "INT32")
        sizes = self.tensor(f"sizes {at}", (2,), "INT32")
        made = self.tensor(f"flat {at}", (shape[0], int(np.prod(shape[1:]))), "FLOAT32")
        rest = self._constant("rest", -1)
        ends = [self._constant(name, [size]) for name, size in (("from", 0), ("to", 1), ("by", 1))]
        slicing = schema.StridedSliceOptionsT()
        slicing.shrinkAxisMask = 1
        packing = schema.PackOptionsT()
        packing.valuesCount = 2
        asking = schema.ShapeOptionsT()
        asking.outType = schema.TensorType.INT32
        self.operator("SHAPE", [given], [asked], asking)
        self.operator("STRIDED_SLICE", [asked, *ends], [first], slicing)
        self.operator("PACK", [first, rest], [sizes], packing)
        self.operator("RESHAPE", [given, sizes], [made], schema.ReshapeOptionsT())
        return made

    def logistic(self, given: int) -> int:
        """Add a LOGISTIC of a tensor, and return what it makes."""
        shape = tuple(self.graph.tensors[given].shape)
        made = self.tensor(f"logistic {len(self.graph.tensors)}", shape, "FLOAT32")
        self.operator("LOGISTIC", [given], [made])
        return made

    def _constant(self, name: str, values: int | list[int]) -> int:
        data = np.asarray(values, np.int32)
        return self.tensor(f"{name} {len(self.graph.tensors)}", data.shape, "INT32", data=data)


def write_flattening(path: Path, shape: tuple[int, ...], *, dynamic: bool = False) -> Path:
    """Write LOGISTIC, a flatten, LOGISTIC; `dynamic` leaves the first size of the input open."""
    model = FlatteningModel(shape, dynamic=dynamic)
    flat = model.flatten(model.logistic(model.x), shape)
    return model.save(path, [model.x], [model.logistic(flat)])


def write_flattening_twice(path: Path, shape: tuple[int, ...]) -> Path:
    """Write a flatten of what a flatten makes: the second asks for a shape that the first sized."""
    model = FlatteningModel(shape)
    flat = model.flatten(model.x, shape)
    again = model.flatten(model.logistic(flat), (shape[0], int(np.prod(shape[1:]))))
    return model.save(path, [model.x], [model.logistic(again)])


def write_sized_by_values(path: Path, count: int) -> Path:
    """Write a flatten of where the input is not 0, of which nobody knows before how many there are.

    WHERE takes booleans: NOT_EQUAL makes them.
    """
    model = FlatteningModel((count,))
    zero = model.tensor("zero", (), "FLOAT32", data=np.zeros((), np.float32))
    unequal = model.tensor("unequal", (count,), "BOOL")
    places = model.tensor("places", (count, 1), "INT64")
    real = model.tensor("real", (count, 1), "FLOAT32")
    casting = schema.CastOptionsT()
    casting.inDataType, casting.outDataType = schema.TensorType.INT64, schema.TensorType.FLOAT32
    model.operator("NOT_EQUAL", [model.x, zero], [unequal], schema.NotEqualOptionsT())
    model.operator("WHERE", [unequal], [places], schema.WhereOptionsT())
    model.operator("CAST", [places], [real], casting)
    flat = model.flatten(real, (count, 1))
    return model.save(path, [model.x], [flat])
