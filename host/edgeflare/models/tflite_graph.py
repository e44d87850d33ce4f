"""The graph inside a `.tflite` file: its operators, its tensors, and what the input reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.models.tflite_file import read_model

_OPERATOR_NAMES = {
    number: name
    for name, number in vars(schema.BuiltinOperator).items()
    if not name.startswith("_")
}
_DTYPES = {
    schema.TensorType.FLOAT32: "float32",
    schema.TensorType.FLOAT16: "float16",
    schema.TensorType.FLOAT64: "float64",
    schema.TensorType.INT8: "int8",
    schema.TensorType.UINT8: "uint8",
    schema.TensorType.INT16: "int16",
    schema.TensorType.UINT16: "uint16",
    schema.TensorType.INT32: "int32",
    schema.TensorType.UINT32: "uint32",
    schema.TensorType.INT64: "int64",
    schema.TensorType.UINT64: "uint64",
    schema.TensorType.BOOL: "bool",
}


@dataclass(frozen=True)
class GraphTensor:
    """A tensor of a graph.

    Attributes:
        index: position among the graph's tensors.
        name: as the file has it; may be empty.
        shape: the batch dimension included.
        dtype: numpy's name of the type; empty for types that numpy lacks.
        scales: of its quantization, one or one for each channel; empty where not quantized.
        zero_points: likewise.
        axis: the dimension that the channels are along.
        constant: the file holds its values.

    """

    index: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int
    constant: bool

    @property
    def size(self) -> int:
        """Number of values."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.size * np.dtype(self.dtype).itemsize

    @property
    def holds_int8_steps(self) -> bool:
        """Whether raw values are int8 numbers of steps from zero, as weights have to be."""
        return self.dtype == "int8" and bool(self.scales) and not any(self.zero_points)

    def real(self, raw: NDArray[np.generic]) -> NDArray[np.float64]:
        """Return the real values of raw ones, which have the tensor's shape."""
        values = raw.astype(np.float64)
        if not self.scales:
            return values
        along = [1] * len(self.shape)
        if len(self.scales) > 1:
            along[self.axis] = -1
        scales = np.asarray(self.scales, np.float64).reshape(along or ())
        zero_points = np.asarray(self.zero_points, np.float64).reshape(along or ())
        return (values - zero_points) * scales


@dataclass(frozen=True)
class GraphOp:
    """An operator of a graph.

    Attributes:
        index: position in execution order.
        name: "CONV_2D", or the custom operator's own name.
        inputs: indexes of the tensors that it reads, absent optional ones left out.
        outputs: indexes of the tensors that it writes.

    """

    index: int
    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class Graph:
    """The main graph of a `.tflite` file.

    Attributes:
        operators: in execution order.
        tensors: all of them.
        inputs: indexes of the tensors that the model takes.
        outputs: indexes of the tensors that it gives.
        model: the whole file as `read_model` unpacked it, which stays as it is.
        source: what the user calls the file, for messages.

    """

    def __init__(self, content: bytes, source: str = "the model") -> None:
        """Read a file.

        Args:
            content: the file.
            source: what the user calls it, for messages.

        Raises:
            UserError: it cannot be read.

        """
        self.source = source
        try:
            self.model = read_model(content, source)
            self._graph = self.model.subgraphs[0]
            names = [_operator_name(code) for code in self.model.operatorCodes]
            self.tensors = tuple(
                _tensor(index, tensor, self.model.buffers)
                for index, tensor in enumerate(self._graph.tensors)
            )
            self.operators = tuple(
                GraphOp(
                    index,
                    names[one.opcodeIndex],
                    tensor_indexes(one.inputs),
                    tensor_indexes(one.outputs),
                )
                for index, one in enumerate(self._graph.operators)
            )
            self.inputs = tensor_indexes(self._graph.inputs)
            self.outputs = tensor_indexes(self._graph.outputs)
        except UserError:
            raise
        except Exception as error:  # whatever flatbuffers raises on a damaged file
            raise UserError(f"{source}: its graph cannot be read: {error}") from error

    @cached_property
    def made_by(self) -> Mapping[int, int]:
        """The operator that writes a tensor, by the tensor's index."""
        return {tensor: one.index for one in self.operators for tensor in one.outputs}

    @cached_property
    def preparing(self) -> frozenset[int]:
        """Operators that only prepare constants, and do not depend on the input."""
        fixed = {tensor.index for tensor in self.tensors if tensor.constant}
        found = set()
        for one in self.operators:
            if one.inputs and fixed.issuperset(one.inputs):
                found.add(one.index)
                fixed.update(one.outputs)
        return frozenset(found)

    @cached_property
    def layers(self) -> tuple[GraphOp, ...]:
        """The operators that depend on the input, in execution order."""
        return tuple(one for one in self.operators if one.index not in self.preparing)

    def fed(self, one: GraphOp) -> tuple[int, ...]:
        """Return the tensors that an operator reads and that depend on the model's input."""
        return tuple(
            tensor
            for tensor in dict.fromkeys(one.inputs)
            if not self.tensors[tensor].constant and self.made_by.get(tensor) not in self.preparing
        )

    def options(self, index: int) -> Mapping[str, Any]:
        """Return an operator's options, by name, such as its strides and padding."""
        options = self._graph.operators[index].builtinOptions
        return {} if options is None else dict(vars(options))

    def values(self, tensor: int) -> NDArray[np.generic]:
        """Return a constant's raw values, in its shape."""
        known = self.tensors[tensor]
        data = self.model.buffers[self._graph.tensors[tensor].buffer].data
        raw = np.asarray(data, np.uint8).tobytes()
        return np.frombuffer(raw, known.dtype).reshape(known.shape)


def tensor_indexes(tensors: Any) -> tuple[int, ...]:
    """Return tensor indexes without those of absent optional tensors."""
    return tuple(int(tensor) for tensor in _values(tensors) if int(tensor) >= 0)


def _operator_name(code: Any) -> str:
    if code.customCode:
        return str(code.customCode.decode(errors="replace"))
    number = int(max(code.builtinCode, code.deprecatedBuiltinCode))
    return str(_OPERATOR_NAMES.get(number, f"operator {number}"))


def _tensor(index: int, tensor: Any, buffers: Sequence[Any]) -> GraphTensor:
    quantization = tensor.quantization
    scales = () if quantization is None else _values(quantization.scale)
    zero_points = () if quantization is None else _values(quantization.zeroPoint)
    data = buffers[tensor.buffer].data
    return GraphTensor(
        index=index,
        name=(tensor.name or b"").decode(errors="replace"),
        shape=tuple(int(size) for size in _values(tensor.shape)),
        dtype=_DTYPES.get(tensor.type, ""),
        scales=tuple(float(scale) for scale in scales),
        zero_points=tuple(int(point) for point in zero_points) or (0,) * len(scales),
        axis=0 if quantization is None else int(quantization.quantizedDimension),
        constant=data is not None and len(data) > 0,
    )


def _values(values: Any) -> tuple[Any, ...]:
    return () if values is None else tuple(values)
