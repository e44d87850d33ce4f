"""Models whose weights are stored as float16 or sparse, and prepared by operators as they run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.models.tflite_graph import Graph
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
        main = model.subgraphs[0]
        added = []
        for operator, at in read:
            tensor = graph.tensors[graph.operators[operator].inputs[at]]
            if tensor.dtype != "float32" or not tensor.constant:
                continue
            values = graph.values(tensor.index)
            chain = operators if values.ndim > 1 else [one for one in operators if one != "DENSIFY"]
            half = "DEQUANTIZE" in operators
            made = _stored(model, values.astype("float16" if half else "float32"), chain)
            for name in chain:
                made, source = _tensor(model, tensor.shape, half and name == "DENSIFY"), made
                added.append(_operator(model, name, source, made))
            inputs = list(main.operators[operator].inputs)
            main.operators[operator].inputs = [*inputs[:at], made, *inputs[at + 1 :]]
        main.operators = [*added, *main.operators]

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


def _stored(model: Any, values: NDArray[Any], chain: Sequence[str]) -> int:
    made = _tensor(model, values.shape, values.dtype == np.float16)
    tensor, buffer = model.subgraphs[0].tensors[made], schema.BufferT()
    if "DENSIFY" in chain:
        order = range(values.ndim)
        tensor.sparsity, values = compressed_along(values, order, values.ndim - 1)
    buffer.data = np.frombuffer(values.tobytes(), np.uint8)
    model.buffers.append(buffer)
    tensor.buffer = len(model.buffers) - 1
    return made


def _tensor(model: Any, shape: Sequence[int], half: bool) -> int:
    tensor, tensors = schema.TensorT(), model.subgraphs[0].tensors
    tensor.name, tensor.shape = f"prepared/{len(tensors)}".encode(), list(shape)
    tensor.type = schema.TensorType.FLOAT16 if half else schema.TensorType.FLOAT32
    tensors.append(tensor)
    return len(tensors) - 1


def _operator(model: Any, name: str, source: int, made: int) -> Any:
    code, operator = schema.OperatorCodeT(), schema.OperatorT()
    number = getattr(schema.BuiltinOperator, name)
    code.builtinCode, code.deprecatedBuiltinCode, code.version = number, min(number, 127), 1
    model.operatorCodes.append(code)
    operator.opcodeIndex = len(model.operatorCodes) - 1
    operator.inputs, operator.outputs = [source], [made]
    return operator
