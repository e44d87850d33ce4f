"""A copy of a graph whose operators and tensors can be changed, and the file that is made of it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import flatbuffers  # type: ignore[import-untyped]
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.models.tflite_graph import Graph, tensor_indexes

_IDENTIFIER = b"TFL3"


def changeable_copy(graph: Graph) -> Any:
    """Return a copy of the model whose main graph can be changed; weights are shared.

    Its signatures are left out, since they name inputs and outputs that a part need not have.
    """
    model = copy.copy(graph.model)
    model.signatureDefs = []
    main = copy.copy(model.subgraphs[0])
    main.tensors = list(main.tensors)
    model.subgraphs = [main, *model.subgraphs[1:]]
    model.buffers = list(model.buffers)
    return model


def packed(model: Any) -> bytes:
    """Drop the tensors and buffers that nothing refers to any more, and return the file."""
    graph = model.subgraphs[0]
    used = dict.fromkeys(int(tensor) for tensor in (*graph.inputs, *graph.outputs))
    for operator in graph.operators:
        used.update(dict.fromkeys(tensor_indexes(operator.inputs)))
        used.update(dict.fromkeys(tensor_indexes(operator.outputs)))
        used.update(dict.fromkeys(tensor_indexes(operator.intermediates)))
    number = {tensor: n for n, tensor in enumerate(sorted(used))}
    graph.tensors = [graph.tensors[tensor] for tensor in number]
    graph.inputs = [number[int(tensor)] for tensor in graph.inputs]
    graph.outputs = [number[int(tensor)] for tensor in graph.outputs]
    graph.operators = [_renumbered(operator, number) for operator in graph.operators]
    held = {int(tensor.buffer) for subgraph in model.subgraphs for tensor in subgraph.tensors}
    held.update(int(entry.buffer) for entry in model.metadata or [])
    empty = schema.BufferT()
    model.buffers = [
        buffer if index in held else empty for index, buffer in enumerate(model.buffers)
    ]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=_IDENTIFIER)
    return bytes(builder.Output())


def add_duplicate(model: Any, tensor: int) -> int:
    """Add a tensor that is like another one of the main graph, and return its index.

    Its name is its own, since accelerators refuse a model with two inputs of one name.
    """
    tensors = model.subgraphs[0].tensors
    duplicate = copy.copy(tensors[tensor])
    duplicate.name = (duplicate.name or b"") + b"/given %d" % len(tensors)
    tensors.append(duplicate)
    return len(tensors) - 1


def rewired(operator: Any, others: Mapping[int, int], *, linear: bool = False) -> Any:
    """Return an operator that reads and fills other tensors in place of some.

    Args:
        operator: stays as it is.
        others: the tensor that takes the place of another, by that one's index.
        linear: leave out a fused activation.

    """
    operator = copy.copy(operator)
    operator.inputs = [others.get(int(tensor), int(tensor)) for tensor in operator.inputs]
    operator.outputs = [others.get(int(tensor), int(tensor)) for tensor in operator.outputs]
    if linear and hasattr(operator.builtinOptions, "fusedActivationFunction"):
        operator.builtinOptions = copy.copy(operator.builtinOptions)
        operator.builtinOptions.fusedActivationFunction = schema.ActivationFunctionType.NONE
    return operator


def replace_constant(model: Any, tensor: int, values: NDArray[np.generic]) -> None:
    """Give a tensor of the main graph constant raw values; float32 ones are not quantized."""
    graph = model.subgraphs[0]
    buffer = schema.BufferT()
    buffer.data = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
    graph.tensors[tensor] = copy.copy(graph.tensors[tensor])
    graph.tensors[tensor].buffer = len(model.buffers)
    graph.tensors[tensor].sparsity = None
    if values.dtype == np.float32:
        graph.tensors[tensor].type = schema.TensorType.FLOAT32
        graph.tensors[tensor].quantization = None
    model.buffers.append(buffer)


def _renumbered(operator: Any, number: Mapping[int, int]) -> Any:
    operator = copy.copy(operator)
    for key in ("inputs", "outputs", "intermediates"):
        tensors = getattr(operator, key)
        if tensors is not None:
            setattr(operator, key, [number.get(int(tensor), -1) for tensor in tensors])
    return operator
