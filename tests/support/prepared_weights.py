"""Models whose weights are stored as float16 or sparse, and prepared by operators as they run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.models.tflite_graph import Graph
from graph_writer import GraphWriter
from tampering import edited


def with_prepared_weights(content: bytes, operators: Sequence[str]) -> bytes:
    """A float model whose weights and biases pass through operators.

    Args:
        content: the model.
        operators: "DENSIFY" stores them as sparse, "DEQUANTIZE" as float16, in this order.

    """
    graph = Graph(content)
    read = [(one.index, at) for one in graph.operators for at in range(1, len(one.inputs))]

    def change(model: Any) -> None:
        writer, added = GraphWriter(model), []
        for operator, at in read:
            tensor = graph.tensors[graph.operators[operator].inputs[at]]
            if tensor.dtype != "float32" or not tensor.constant:
                continue
            values = graph.values(tensor.index)
            chain = [one for one in operators if one != "DENSIFY" or values.ndim > 1]
            half = "DEQUANTIZE" in operators
            kept, sparsity = values.astype("float16" if half else "float32"), None
            if "DENSIFY" in chain:
                sparsity, kept = compressed_along(kept, range(kept.ndim), kept.ndim - 1)
            made = writer.tensor("prepared", tensor.shape, kept.dtype.name.upper(), data=kept)
            writer.graph.tensors[made].sparsity = sparsity
            for name in chain:
                kind = "FLOAT16" if half and name == "DENSIFY" else "FLOAT32"
                made, source = writer.tensor("prepared", tensor.shape, kind), made
                added.append(writer.detached(name, [source], [made]))
            inputs = list(writer.graph.operators[operator].inputs)
            inputs[at] = made
            writer.graph.operators[operator].inputs = inputs
        for number, one in enumerate(writer.graph.tensors):
            one.name = f"prepared/{number}" if one.name == "prepared" else one.name
        writer.graph.operators = [*added, *writer.graph.operators]

    return edited(content, change)


def compressed_along(
    values: NDArray[Any], levels: Sequence[int], sparse: int, block: int = 1
) -> tuple[Any, NDArray[Any]]:
    """Return sparsity parameters of an array, and the values of it that are stored.

    Args:
        values: the tensor.
        levels: its dimensions in the order of traversal.
        sparse: the level that is compressed; all others are dense.
        block: values of one block along the last dimension.

    """
    sparsity, rank = schema.SparsityParametersT(), values.ndim
    sparsity.traversalOrder, sparsity.dimMetadata = list(levels), []
    if block > 1:
        values = values.reshape(*values.shape[:-1], -1, block)
        sparsity.traversalOrder, sparsity.blockMap = [*levels, rank], [rank - 1]
    moved = values.transpose(sparsity.traversalOrder)
    kept = (moved != 0).any(axis=tuple(range(sparse + 1, moved.ndim)))
    for level, size in enumerate(moved.shape):
        one = schema.DimensionMetadataT()
        one.format, one.denseSize = schema.DimensionType.DENSE, size
        if level == sparse:
            one.format = schema.DimensionType.SPARSE_CSR
            rows = kept.reshape(-1, size)
            one.arraySegments, one.arrayIndices = schema.Int32VectorT(), schema.Int32VectorT()
            one.arraySegments.values = [0, *np.cumsum(rows.sum(axis=1)).tolist()]
            one.arrayIndices.values = np.nonzero(rows)[1].tolist()
            one.arraySegmentsType = one.arrayIndicesType = schema.SparseIndexVector.Int32Vector
        sparsity.dimMetadata.append(one)
    return sparsity, moved[kept]
