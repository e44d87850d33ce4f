"""Small models that ask for the shapes of their tensors while they run."""

from __future__ import annotations

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from graph_writer import GraphWriter


class FlatteningModel(GraphWriter):
    """A float model under construction whose input `x` is flattened as TensorFlow's converter does.

    That is SHAPE, STRIDED_SLICE of its first size, PACK with -1, and RESHAPE.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.x = self.tensor("x", shape, "FLOAT32")

    def flatten(self, given: int, shape: tuple[int, ...]) -> int:
        """Add a flatten of a tensor of this shape, and return what it makes."""
        at = len(self.graph.tensors)
        asked = self.tensor(f"shape {at}", (len(shape),), "INT32")
        first = self.tensor(f"first {at}", (), "INT32")
        sizes = self.tensor(f"sizes {at}", (2,), "INT32")
        made = self.tensor(f"flat {at}", (shape[0], int(np.prod(shape[1:]))), "FLOAT32")
        rest, *ends = (
            self.constant(f"{values} {at}", np.array(values, np.int32))
            for values in (-1, [0], [1], [1])
        )
        asking = schema.ShapeOptionsT(schema.TensorType.INT32)
        self.operator("SHAPE", [given], [asked], asking)
        slicing = schema.StridedSliceOptionsT(shrinkAxisMask=1)
        self.operator("STRIDED_SLICE", [asked, *ends], [first], slicing)
        self.operator("PACK", [first, rest], [sizes], schema.PackOptionsT(valuesCount=2))
        self.operator("RESHAPE", [given, sizes], [made], schema.ReshapeOptionsT())
        return made

    def logistic(self, given: int) -> int:
        """Add a LOGISTIC of a tensor, and return what it makes."""
        shape = tuple(self.graph.tensors[given].shape)
        made = self.tensor(f"logistic {len(self.graph.tensors)}", shape, "FLOAT32")
        self.operator("LOGISTIC", [given], [made])
        return made

    def declare(self, sizes: list[int], *tensors: int) -> None:
        """Leave sizes of tensors open, where -1 stands."""
        for tensor in tensors:
            self.graph.tensors[tensor].shapeSignature = sizes
