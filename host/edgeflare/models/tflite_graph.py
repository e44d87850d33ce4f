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

from edgeflare.core.task import OutputMaker
from edgeflare.core.tensor import Tensor
from edgeflare.errors import UserError
from edgeflare.models.model_structure import operator_name, options_class
from edgeflare.models.tflite_file import PACKED, places_of_sparse, read_model, unpacked_numbers

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
_TYPE_NAMES = {
    number: name for name, number in vars(schema.TensorType).items() if not name.startswith("_")
}
_LONGEST_NAME = 40
"""Characters of a tensor's name in messages, its last ones: converters write names of hundreds."""

_KEEPING_VALUES = frozenset({"DEQUANTIZE", "DENSIFY"})
"""Operators whose output has the real values of its input."""

_KEEPING_ORDER = frozenset({"CAST", "DEQUANTIZE", "EXPAND_DIMS", "QUANTIZE", "RESHAPE", "SQUEEZE"})
"""Operators whose output has the values of its first input in another type or shape."""


@dataclass(frozen=True)
class GraphTensor:
    """A tensor of a graph.

    Attributes:
        index: position among the graph's tensors.
        name: as the file has it; may be empty.
        shape: the batch dimension included.
        dtype: numpy's name of the type; empty for types that numpy lacks.
        scales: quantization scales, one or one for each channel; empty where not quantized.
        zero_points: zero points, likewise.
        axis: the dimension that the channels are along.
        constant: the file holds its values.
        type: number of its type in the schema.
        variable: it keeps its values from one run to the next, until it is reset.

    """

    index: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int
    constant: bool
    type: int = schema.TensorType.FLOAT32
    variable: bool = False

    @property
    def size(self) -> int:
        """Number of values."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.size * np.dtype(self.dtype).itemsize

    @property
    def as_interface(self) -> Tensor:
        """The same as inputs and outputs of models are described: with one scale, 0 for none."""
        scale, zero_point = (*self.scales, 0.0)[0], (*self.zero_points, 0)[0]
        return Tensor(self.name, self.shape, self.dtype, scale, zero_point)

    @property
    def type_name(self) -> str:
        """The type as the format names it, such as "complex64"."""
        return str(_TYPE_NAMES.get(self.type, f"type {self.type}")).lower()

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest raw value of a type of whole numbers."""
        if self.type in PACKED:
            return PACKED[self.type][1:]
        of_type = np.iinfo(self.dtype)
        return int(of_type.min), int(of_type.max)

    @property
    def has_values(self) -> bool:
        """Whether raw values have a real meaning: floats, or numbers with a quantization."""
        return bool(self.scales) or self.dtype in ("float16", "float32", "float64")

    @property
    def holds_8_bits(self) -> bool:
        """Whether raw values are 8-bit numbers of steps."""
        return self.dtype in ("int8", "uint8") and bool(self.scales)

    @property
    def holds_int8_steps(self) -> bool:
        """Whether raw values are int8 numbers of steps from zero, as weights have to be."""
        return self.dtype == "int8" and bool(self.scales) and not any(self.zero_points)

    def real(self, raw: NDArray[np.generic]) -> NDArray[np.float64]:
        """Return the real values of raw ones, which have the tensor's shape."""
        values = raw.astype(np.float64)
        if not self.scales:
            return values
        scales, zero_points = self._steps
        return (values - zero_points) * scales

    def raw(self, real: NDArray[np.float64]) -> NDArray[np.generic]:
        """Return the raw values nearest to real ones, which have the tensor's shape."""
        if not self.scales:
            with np.errstate(over="ignore", invalid="ignore"):
                return real.astype(self.dtype)
        scales, zero_points = self._steps
        limits = np.iinfo(self.dtype)
        steps = np.rint(real / scales + zero_points)
        with np.errstate(invalid="ignore"):  # NaN becomes whatever the processor makes of it
            return np.clip(steps, limits.min, limits.max).astype(self.dtype)

    @property
    def _steps(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The scales and the zero points, in shapes that go with the tensor's."""
        along = [1] * len(self.shape)
        if len(self.scales) > 1:
            along[self.axis] = -1
        both = (self.scales, self.zero_points)
        scales, zero_points = (
            np.asarray(numbers, np.float64).reshape(along or ()) for numbers in both
        )
        return scales, zero_points


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
    """A graph of a `.tflite` file, the main one if no other is named.

    Attributes:
        number: the graph's place in the file; 0 is the main one.
        operators: operators in execution order.
        tensors: all of them.
        inputs: indexes of the tensors that the model takes.
        outputs: indexes of the tensors that it gives.
        model: the whole file as `read_model` unpacked it, which stays as it is.
        source: what the user calls the file, for messages.

    """

    def __init__(self, content: bytes, source: str = "the model", number: int = 0) -> None:
        """Read a file.

        Args:
            content: the file.
            source: what the user calls it, for messages.
            number: the graph's place in the file.

        """
        self.source, self.number = source, number
        try:
            self.model = read_model(content, source)
            self._graph = self.model.subgraphs[number]
            names = [operator_name(code) for code in self.model.operatorCodes]
            self.tensors = tuple(
                _tensor(index, tensor, self.model.buffers)
                for index, tensor in enumerate(self._graph.tensors)
            )
            self.operators = tuple(
                GraphOp(
                    index,
                    names[operator.opcodeIndex],
                    tensor_indexes(operator.inputs),
                    tensor_indexes(operator.outputs),
                )
                for index, operator in enumerate(self._graph.operators)
            )
            self.inputs = tensor_indexes(self._graph.inputs)
            self.outputs = tensor_indexes(self._graph.outputs)
            self._require_order()
            self._require_sizes()
        except UserError:
            raise
        except Exception as error:  # whatever flatbuffers raises on a damaged file
            raise UserError(f"{source}: its graph cannot be read: {error}") from error

    def _require_order(self) -> None:
        """Refuse operators that read what comes later, which would lead in circles."""
        for operator in self.operators:
            for tensor in operator.inputs:
                if (
                    self.made_by.get(tensor, -1) >= operator.index
                    and not self.tensors[tensor].variable
                ):
                    raise ValueError(
                        f"{operator.name} (operator {operator.index}) reads tensor {tensor}, which"
                        " is written later"
                    )

    def _require_sizes(self) -> None:
        """Refuse constants of fewer values than their shapes have; runtimes take more."""
        for tensor, stored in zip(self.tensors, self._graph.tensors, strict=True):
            if not tensor.constant or stored.sparsity is not None:
                continue
            if tensor.type in PACKED:
                wanted = -(-tensor.size * PACKED[tensor.type][0] // 8)
            elif tensor.dtype:
                wanted = tensor.nbytes
            else:
                continue
            if len(self.model.buffers[stored.buffer].data) < wanted:
                raise ValueError(f"tensor {tensor.index} has fewer values than its shape takes")

    @cached_property
    def made_by(self) -> Mapping[int, int]:
        """The operator that writes a tensor, by the tensor's index."""
        return {
            tensor: operator.index for operator in self.operators for tensor in operator.outputs
        }

    @cached_property
    def preparing(self) -> frozenset[int]:
        """Operators that only prepare constants, and do not depend on the input."""
        fixed = {tensor.index for tensor in self.tensors if tensor.constant}
        found = set()
        for operator in self.operators:
            if operator.inputs and fixed.issuperset(operator.inputs):
                found.add(operator.index)
                fixed.update(operator.outputs)
        return frozenset(found)

    @cached_property
    def layers(self) -> tuple[GraphOp, ...]:
        """The operators that depend on the input, in execution order."""
        return tuple(
            operator for operator in self.operators if operator.index not in self.preparing
        )

    def fed(self, operator: GraphOp) -> tuple[int, ...]:
        """Return the tensors that an operator reads and that depend on the model's input.

        Variables, which an operator keeps for itself, are none of them.
        """
        return tuple(
            tensor
            for tensor in dict.fromkeys(operator.inputs)
            if not (self.tensors[tensor].constant or self.tensors[tensor].variable)
            and self.made_by.get(tensor) not in self.preparing
        )

    def unreadable(self, operator: GraphOp) -> str:
        """Return why an operator's inputs and outputs cannot all be read; empty where they can."""
        tensors = (*self.fed(operator), *operator.outputs)
        if unknown := [tensor for tensor in tensors if not self.tensors[tensor].dtype]:
            return f"{self.describe(unknown[0])} cannot be read"
        return (
            ""
            if operator.outputs
            else f"{operator.name} (operator {operator.index}) puts out nothing"
        )

    def options(self, index: int) -> Mapping[str, Any]:
        """Return an operator's options, by name, such as its strides and padding."""
        options = self._graph.operators[index].builtinOptions
        if options is None and (own := options_class(self.operators[index].name)):
            options = getattr(schema, f"{own}T")()  # what runtimes take for absent ones
        return {} if options is None else dict(vars(options))

    def values(self, tensor: int) -> NDArray[np.generic]:
        """Return a constant's raw values, in its shape; those of four and two bits as 8-bit ones.

        Raises:
            UserError: they are of a type that cannot be read.

        """
        known, stored = self.tensors[tensor], self._graph.tensors[tensor]
        raw = np.asarray(self.model.buffers[stored.buffer].data, np.uint8).tobytes()
        places = None if stored.sparsity is None else self._places(tensor)
        if known.type in PACKED:
            count = known.size if places is None else len(places[0])
            values = unpacked_numbers(raw, known.type, count)
        elif known.dtype:
            size = np.dtype(known.dtype).itemsize
            values = np.frombuffer(raw[: len(raw) // size * size], known.dtype)
        else:
            raise UserError(f"{self.source}: {self.describe(tensor)} cannot be read")
        wanted = known.size if places is None else len(places[0])
        if len(values) != wanted:
            raise UserError(
                f"{self.source}: {self.describe(tensor)} has {len(values)} values, and its shape"
                f" takes {wanted}"
            )
        if places is None:
            return values.reshape(known.shape)
        dense = np.full(known.shape, known.zero_points[0] if known.scales else 0, values.dtype)
        dense[places] = values
        return dense

    def _places(self, tensor: int) -> tuple[NDArray[np.int64], ...]:
        known, stored = self.tensors[tensor], self._graph.tensors[tensor]
        try:
            places = places_of_sparse(stored.sparsity, known.shape)
            ends = zip(places, known.shape, strict=True)
            if any(((indices < 0) | (indices >= size)).any() for indices, size in ends):
                raise IndexError("a value lies outside of it")
        except Exception as error:  # whatever numpy raises on damaged levels
            raise UserError(
                f"{self.source}: {self.describe(tensor)} is sparse, and cannot be unpacked: {error}"
            ) from error
        return places

    def stored(self, tensor: int) -> GraphTensor | None:
        """Return the constant whose real values a tensor has; None where it depends on the input.

        That is the tensor itself, or what DEQUANTIZE and DENSIFY read that prepare it.
        """
        while not self.tensors[tensor].constant:
            maker = self.made_by.get(tensor)
            if maker is None or self.operators[maker].name not in _KEEPING_VALUES:
                return None
            tensor = self.operators[maker].inputs[0]
        return self.tensors[tensor]

    def origin(self, tensor: int) -> OutputMaker | None:
        """Return the operator that a tensor is from, before conversions and reshapes."""
        maker = self.made_by.get(tensor)
        while maker is not None and self.operators[maker].name in _KEEPING_ORDER:
            (tensor, *_) = self.operators[maker].inputs
            maker = self.made_by.get(tensor)
        if maker is None:
            return None
        one = self.operators[maker]
        reads = self.tensors[one.inputs[0]].name if one.inputs else ""
        return OutputMaker(maker, one.name, one.outputs.index(tensor), reads)

    def signature_outputs(self, key: str) -> dict[str, int]:
        """Return the outputs of a signature by their names; nothing for one of another graph."""
        return {
            entry.name.decode(errors="replace"): int(entry.tensorIndex)
            for signature in self.model.signatureDefs or []
            if signature.signatureKey.decode(errors="replace") == key
            and signature.subgraphIndex == self.number
            for entry in signature.outputs
        }

    def real_values(self, tensor: int) -> NDArray[np.float64] | None:
        """Return the real values of a constant or what is prepared from one; None as `stored`."""
        source = self.stored(tensor)
        return None if source is None else source.real(self.values(source.index))

    def describe(self, tensor: int) -> str:
        """Return what messages call a tensor: its name, its type and the operator it belongs to."""
        known, maker = self.tensors[tensor], self.made_by.get(tensor)
        reader = next(
            (operator.index for operator in self.operators if tensor in operator.inputs), None
        )
        at = reader if maker is None else maker
        of = "" if at is None else f" of {self.operators[at].name} (operator {at})"
        name = known.name if len(known.name) <= _LONGEST_NAME else f"…{known.name[-_LONGEST_NAME:]}"
        return f"tensor {name or tensor!r}{of}, {known.type_name},"


def tensor_indexes(tensors: Any) -> tuple[int, ...]:
    """Return tensor indexes without those of absent optional tensors."""
    return tuple(int(tensor) for tensor in _values(tensors) if int(tensor) >= 0)


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
        type=int(tensor.type),
        variable=bool(tensor.isVariable),
    )


def _values(values: Any) -> tuple[Any, ...]:
    return () if values is None else tuple(values)
