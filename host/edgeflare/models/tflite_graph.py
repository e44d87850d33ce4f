"""The graph inside a `.tflite` file: what its operators are, and parts of it cut out as models.

A cut-out part is a `.tflite` of its own. What its operators read from elsewhere becomes its
inputs, what they put out for elsewhere becomes its outputs; residual connections that cross the
cut are among them. Operators that only prepare constants (a DEQUANTIZE of float16 weights) go
with whichever operator needs them.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import flatbuffers  # type: ignore[import-untyped]
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.errors import UserError

_IDENTIFIER = b"TFL3"
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
        outputs: indexes of the tensors that it puts out.

    """

    index: int
    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """A part of a graph, cut out as a model of its own.

    Attributes:
        content: the `.tflite` file.
        inputs: which of the graph's tensors its inputs are, in their order; islands that read the
            same tensor name it once each.
        outputs: which of the graph's tensors its outputs are, in their order.

    """

    content: bytes
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class Graph:
    """The main graph of a `.tflite` file.

    Attributes:
        operators: in execution order.
        tensors: all of them.
        inputs: indexes of the tensors that the model takes.
        outputs: indexes of the tensors that it gives.

    """

    def __init__(self, content: bytes, source: str = "the model") -> None:
        """Read a file.

        Args:
            content: the file.
            source: what the user calls it, for messages.

        Raises:
            UserError: it cannot be read, or keeps its weights outside of the flatbuffer.

        """
        self.source = source
        try:
            self._model = schema.ModelT.InitFromPackedBuf(content)
            self._graph = self._model.subgraphs[0]
            names = [_operator_name(code) for code in self._model.operatorCodes]
            self.tensors = tuple(
                _tensor(index, tensor, self._model.buffers)
                for index, tensor in enumerate(self._graph.tensors)
            )
            self.operators = tuple(
                GraphOp(index, names[one.opcodeIndex], _indexes(one.inputs), _indexes(one.outputs))
                for index, one in enumerate(self._graph.operators)
            )
            self.inputs = _indexes(self._graph.inputs)
            self.outputs = _indexes(self._graph.outputs)
        except (AttributeError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise UserError(f"{source}: its graph cannot be read: {error}") from error
        except Exception as error:  # struct.error and what flatbuffers raise on a damaged file
            raise UserError(f"{source}: its graph cannot be read: {error}") from error
        if any(getattr(buffer, "offset", 0) > 1 for buffer in self._model.buffers):
            raise UserError(f"{source}: models with weights outside of the flatbuffer are not cut")

    @cached_property
    def made_by(self) -> Mapping[int, int]:
        """The operator that puts a tensor out, by the tensor's index."""
        return {tensor: one.index for one in self.operators for tensor in one.outputs}

    @cached_property
    def preparing(self) -> frozenset[int]:
        """Operators that only prepare constants: nothing of the input reaches them."""
        fixed = {tensor.index for tensor in self.tensors if tensor.constant}
        found = set()
        for one in self.operators:
            if one.inputs and fixed.issuperset(one.inputs):
                found.add(one.index)
                fixed.update(one.outputs)
        return frozenset(found)

    @cached_property
    def layers(self) -> tuple[GraphOp, ...]:
        """The operators that the input reaches, in execution order."""
        return tuple(one for one in self.operators if one.index not in self.preparing)

    def fed(self, one: GraphOp) -> tuple[int, ...]:
        """Return the tensors that an operator reads of what depends on the model's input."""
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
        data = self._model.buffers[self._graph.tensors[tensor].buffer].data
        raw = np.asarray(data, np.uint8).tobytes()
        return np.frombuffer(raw, known.dtype).reshape(known.shape)

    def cuttable(self) -> str:
        """Return why the graph cannot be cut, as the end of a sentence; empty where it can."""
        if any(tensor.isVariable for tensor in self._graph.tensors):
            return "it keeps a state from one run to the next"
        for one in self.layers:
            for tensor in (*self.fed(one), *one.outputs):
                if not self.tensors[tensor].dtype:
                    return f"tensor {self.tensors[tensor].name!r} is of a type without numbers"
        return ""

    def extract(self, first: int, last: int, *, expose: Collection[int] = ()) -> Part:
        """Cut out the operators `first` … `last`, both included.

        Args:
            first: position of the first operator.
            last: position of the last one.
            expose: further tensors that the part is to give, which its operators put out.

        Raises:
            ValueError: there are no such operators, or none of them is reached by the input.
            UserError: the graph cannot be cut.

        """
        if not 0 <= first <= last < len(self.operators):
            raise ValueError(f"there are no operators {first} … {last}")
        chosen = [one for one in self.layers if first <= one.index <= last]
        if not chosen:
            raise ValueError(f"the operators {first} … {last} only prepare constants")
        self._require_cuttable()
        made = {tensor for one in chosen for tensor in one.outputs}
        read = dict.fromkeys(tensor for one in chosen for tensor in self.fed(one))
        whole = len(chosen) == len(self.layers)
        inputs = self.inputs if whole else tuple(tensor for tensor in read if tensor not in made)
        outputs = self.outputs if whole else self._outputs(chosen, made)
        outputs = (*outputs, *(tensor for tensor in expose if tensor not in outputs))
        model = self._bare()
        graph = model.subgraphs[0]
        kept = self._with_preparations(chosen)
        graph.operators = [self._graph.operators[one.index] for one in kept]
        graph.inputs, graph.outputs = list(inputs), list(outputs)
        return Part(_packed(model), inputs, outputs)

    def islands(
        self,
        chosen: Iterable[int],
        constants: Mapping[int, NDArray[np.generic]] | None = None,
        *,
        linear: bool = False,
    ) -> Part:
        """Put operators side by side into one model, each fed from outside alone.

        So one run tells what each of them does with given inputs. Each has inputs of its own, in
        the order of `fed`, also where several read the same tensor.

        Args:
            chosen: positions of the operators, in execution order.
            constants: other raw values for constants, by tensor; float32 ones take the place of
                quantized ones too.
            linear: leave out fused activations.

        Raises:
            UserError: the graph cannot be cut.

        """
        self._require_cuttable()
        model = self._bare()
        graph = model.subgraphs[0]
        operators = [self.operators[index] for index in chosen]
        inputs: list[int] = []
        graph.inputs, graph.operators = [], []
        apart = {one.index: one for one in operators}
        for one in self._with_preparations(operators):
            if one.index not in apart:
                graph.operators.append(self._graph.operators[one.index])
                continue
            given = {}
            for tensor in self.fed(one):
                given[tensor] = len(graph.tensors)
                graph.tensors.append(_duplicate(graph.tensors[tensor]))
                graph.inputs.append(given[tensor])
                inputs.append(tensor)
            graph.operators.append(_rewired(self._graph.operators[one.index], given, linear=linear))
        outputs = tuple(tensor for one in operators for tensor in one.outputs)
        graph.outputs = list(outputs)
        for tensor, values in (constants or {}).items():
            _replace_constant(model, tensor, values)
        return Part(_packed(model), tuple(inputs), outputs)

    def crossing(self, behind: int, until: int) -> tuple[int, ...]:
        """Return what the layers behind an operator read from before them.

        Args:
            behind: position of the operator.
            until: the tensor at which the last of these layers ends.

        """
        chosen = self._between(behind, until)
        made = {tensor for one in chosen for tensor in one.outputs}
        read = dict.fromkeys(tensor for one in chosen for tensor in self.fed(one))
        return tuple(tensor for tensor in read if tensor not in made)

    def tails(self, behind: Iterable[int], until: int) -> Part:
        """Put ends of the graph side by side into one model, each fed from outside alone.

        So one run tells what other values in the middle would have led to. The inputs of each end
        are in the order of `crossing`.

        Args:
            behind: positions of operators; an end begins behind each of them, and has a layer.
            until: the tensor at which all of them end.

        Raises:
            UserError: the graph cannot be cut.

        """
        self._require_cuttable()
        model = self._bare()
        graph = model.subgraphs[0]
        graph.inputs, graph.outputs, inputs = [], [], list[int]()
        starts = list(behind)
        longest = self._between(min(starts), until)
        graph.operators = [
            self._graph.operators[one.index]
            for one in self._with_preparations(longest)
            if one.index in self.preparing
        ]
        for start in starts:
            inputs += self.crossing(start, until)
            layers = self._between(start, until)
            made = [tensor for one in layers for tensor in one.outputs]
            copies = {}
            for tensor in (*self.crossing(start, until), *made):
                copies[tensor] = len(graph.tensors)
                graph.tensors.append(_duplicate(graph.tensors[tensor]))
            graph.inputs += [copies[tensor] for tensor in self.crossing(start, until)]
            graph.operators += [
                _rewired(self._graph.operators[one.index], copies) for one in layers
            ]
            graph.outputs.append(copies[until])
        return Part(_packed(model), tuple(inputs), (until,) * len(starts))

    def _between(self, behind: int, until: int) -> list[GraphOp]:
        """Return the layers behind an operator, up to the one that makes a tensor."""
        return [one for one in self.layers if behind < one.index <= self.made_by[until]]

    def _require_cuttable(self) -> None:
        if why := self.cuttable():
            raise UserError(f"{self.source} cannot be cut into parts: {why}")

    def _outputs(self, chosen: Sequence[GraphOp], made: Collection[int]) -> tuple[int, ...]:
        """Return what a part puts out for elsewhere, or for nobody; in the order of its making."""
        inside = {one.index for one in chosen}
        elsewhere = {
            tensor for one in self.operators if one.index not in inside for tensor in one.inputs
        }
        read = {tensor for one in self.operators for tensor in one.inputs}
        return tuple(
            dict.fromkeys(
                tensor
                for one in chosen
                for tensor in one.outputs
                if tensor in elsewhere or tensor in self.outputs or tensor not in read
                if tensor in made
            )
        )

    def _with_preparations(self, chosen: Sequence[GraphOp]) -> list[GraphOp]:
        """Add the operators that prepare constants for the chosen ones."""
        needed = {one.index for one in chosen}
        waiting = [tensor for one in chosen for tensor in one.inputs]
        while waiting:
            maker = self.made_by.get(waiting.pop())
            if maker in self.preparing and maker not in needed:
                needed.add(maker)
                waiting.extend(self.operators[maker].inputs)
        return [self.operators[index] for index in sorted(needed)]

    def _bare(self) -> Any:
        """Return a copy of the model whose first graph can be changed; weights are shared."""
        model = copy.copy(self._model)
        # They name inputs and outputs that a part need not have.
        model.signatureDefs = []
        graph = copy.copy(self._graph)
        graph.tensors = list(self._graph.tensors)
        model.subgraphs = [graph, *self._model.subgraphs[1:]]
        model.buffers = list(self._model.buffers)
        return model


def _packed(model: Any) -> bytes:
    """Drop the tensors and buffers that nothing refers to any more, and write the file."""
    graph = model.subgraphs[0]
    used = dict.fromkeys(int(tensor) for tensor in (*graph.inputs, *graph.outputs))
    for operator in graph.operators:
        used.update(dict.fromkeys(_indexes(operator.inputs)))
        used.update(dict.fromkeys(_indexes(operator.outputs)))
        used.update(dict.fromkeys(_indexes(operator.intermediates)))
    number = {tensor: n for n, tensor in enumerate(sorted(used))}
    graph.tensors = [graph.tensors[tensor] for tensor in number]
    graph.inputs = [number[int(tensor)] for tensor in graph.inputs]
    graph.outputs = [number[int(tensor)] for tensor in graph.outputs]
    graph.operators = [_renumbered(operator, number) for operator in graph.operators]
    held = {int(tensor.buffer) for one in model.subgraphs for tensor in one.tensors}
    held.update(int(entry.buffer) for entry in model.metadata or [])
    empty = schema.BufferT()
    model.buffers = [
        buffer if index in held else empty for index, buffer in enumerate(model.buffers)
    ]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=_IDENTIFIER)
    return bytes(builder.Output())


def _renumbered(operator: Any, number: Mapping[int, int]) -> Any:
    operator = copy.copy(operator)
    for key in ("inputs", "outputs", "intermediates"):
        tensors = getattr(operator, key)
        if tensors is not None:
            setattr(operator, key, [number.get(int(tensor), -1) for tensor in tensors])
    return operator


def _rewired(operator: Any, others: Mapping[int, int], *, linear: bool = False) -> Any:
    """Return an operator that reads and fills other tensors in place of some."""
    operator = copy.copy(operator)
    operator.inputs = [others.get(int(tensor), int(tensor)) for tensor in operator.inputs]
    operator.outputs = [others.get(int(tensor), int(tensor)) for tensor in operator.outputs]
    if linear and hasattr(operator.builtinOptions, "fusedActivationFunction"):
        operator.builtinOptions = copy.copy(operator.builtinOptions)
        operator.builtinOptions.fusedActivationFunction = schema.ActivationFunctionType.NONE
    return operator


def _duplicate(tensor: Any) -> Any:
    duplicate = copy.copy(tensor)
    duplicate.name = (tensor.name or b"") + b"/given"
    return duplicate


def _replace_constant(model: Any, tensor: int, values: NDArray[np.generic]) -> None:
    graph = model.subgraphs[0]
    buffer = schema.BufferT()
    buffer.data = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
    graph.tensors[tensor] = copy.copy(graph.tensors[tensor])
    graph.tensors[tensor].buffer = len(model.buffers)
    if values.dtype == np.float32:
        graph.tensors[tensor].type = schema.TensorType.FLOAT32
        graph.tensors[tensor].quantization = None
    model.buffers.append(buffer)


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


def _indexes(tensors: Any) -> tuple[int, ...]:
    """Return tensor indexes without those of absent optional tensors."""
    return tuple(int(tensor) for tensor in _values(tensors) if int(tensor) >= 0)
