"""The operators in a `.tflite` file, each as a graph of its own, whether they are known or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from edgeflare.conform.drafts.operator_arithmetic import operator_arithmetic
from edgeflare.conform.graphs.graph_file import read_options
from edgeflare.conform.graphs.operator_graph import (
    ABSENT,
    GraphValue,
    OperatorGraph,
    Quantization,
    Values,
)
from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import Graph, GraphTensor

_NO_EXTERNAL_BUFFER = 0


@dataclass(frozen=True, slots=True)
class FileOperator:
    """An operator in a file.

    Attributes:
        place: in the file's order of execution.
        name: in the schema, or a custom operator's own.
        graph: of it alone, with its constants; None where it cannot be one.
        reason: why it cannot; empty if it can.
        reads: the tensors of the file that the graph is given, in order.
        writes: the tensors of the file that it answers, in order.
        arithmetic: its multiply-accumulates; see `operator_arithmetic`.

    """

    place: int
    name: str
    graph: OperatorGraph | None
    reason: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    arithmetic: int


class _UnreadableTensor(ValueError):  # noqa: N818 - a fact about a model, as the message says
    """A tensor that no graph of ours can have; the message says why."""


def file_operators(content: bytes, source: str) -> tuple[FileOperator, ...]:
    """Return the operators of a file's main graph.

    Weights that a file has as float16, with an operator that makes them float32, are float32
    constants of whatever reads them, and the operator that does so is left out: runtimes do the
    same when they load the file.

    Raises:
        UserError: the file is damaged, or its weights are not in it.

    """
    try:
        graph = Graph(content, source)
    except UserError as error:
        raise UserError(f"{error}; name a .tflite file that is whole") from error
    try:
        tensors, arithmetic = _Tensors(graph), operator_arithmetic(graph)
        return tuple(
            _file_operator(tensors, at, arithmetic[at])
            for at in range(len(graph.operators))
            if at not in tensors.folded
        )
    except (UserError, _UnreadableTensor):
        raise
    except Exception as error:  # whatever numpy and the schema raise on a damaged file
        raise UserError(
            f"{source}: its operators cannot be read: {error}; name a .tflite file that is whole"
        ) from error


class _Tensors:
    """The tensors of a file, as values of graphs.

    Attributes:
        graph: the file.
        folded: operators that only make float32 constants of float16 ones.

    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._main = graph.model.subgraphs[0]
        self._written = {at for one in graph.operators for at in one.outputs}
        self._check_place_of_weights()
        self.folded = frozenset(
            one.index
            for one in graph.operators
            if one.name == "DEQUANTIZE" and self._is_float16_constant(one.inputs[0])
        )
        self._halves = {
            graph.operators[at].outputs[0]: graph.operators[at].inputs[0] for at in self.folded
        }

    def value(self, at: int) -> GraphValue:
        """Return a tensor; _UnreadableTensor where it is none of ours."""
        known, raw = self.graph.tensors[at], self._main.tensors[at]
        if not known.dtype:
            raise _UnreadableTensor(f"a tensor is of type {known.type_name}, which is not tested")
        if raw.sparsity is not None:
            raise _UnreadableTensor("its weights are stored as sparse ones")
        if raw.isVariable:
            raise _UnreadableTensor("it keeps a state from one inference to the next")
        value = GraphValue(known.dtype, known.shape, _quantization(known))
        values = self._values(at)
        return value if values is None else value.constant(values.reshape(known.shape))

    def _values(self, at: int) -> Values | None:
        if at in self._halves:
            return self.graph.values(self._halves[at]).astype(np.float32)
        if self.graph.tensors[at].constant:
            return self.graph.values(at)
        if self._is_constant_without_values(at):
            return np.zeros(0, self.graph.tensors[at].dtype)
        return None

    def _is_constant_without_values(self, at: int) -> bool:
        """Whether a tensor is a constant of size 0, or one whose values are missing."""
        computed = at in self._written or at in self.graph.inputs
        return not (
            computed or self.graph.tensors[at].constant or self._main.tensors[at].isVariable
        )

    def _is_float16_constant(self, at: int) -> bool:
        return self.graph.tensors[at].constant and self.graph.tensors[at].dtype == "float16"

    def _check_place_of_weights(self) -> None:
        read = {at for one in self.graph.operators for at in one.inputs}
        missing = [
            at
            for at in sorted(read)
            if self._main.tensors[at].externalBuffer != _NO_EXTERNAL_BUFFER
            or (self._is_constant_without_values(at) and self.graph.tensors[at].size)
        ]
        if missing:
            raise UserError(
                f"{self.graph.source}: weights of {len(missing)} tensors are not in the file; "
                "name a file that has them, as converters write it unless told otherwise"
            )


def _file_operator(tensors: _Tensors, place: int, arithmetic: int) -> FileOperator:
    known = tensors.graph.operators[place]
    raw = tensors.graph.model.subgraphs[0].operators[place]
    read = _indexes(raw.inputs)
    try:
        inputs = [None if at == ABSENT else tensors.value(at) for at in read]
        outputs = [tensors.value(at) for at in known.outputs]
        if raw.intermediates is not None and len(raw.intermediates):
            raise _UnreadableTensor("it has intermediate tensors")
    except _UnreadableTensor as why:
        return FileOperator(place, known.name, None, str(why), (), known.outputs, arithmetic)
    if known.name == "RESHAPE" and len(inputs) > 1:
        inputs[1] = _known_shape(inputs[1], outputs[0])
    version = int(tensors.graph.model.operatorCodes[raw.opcodeIndex].version)
    graph = OperatorGraph.of_operator(
        known.name, inputs, outputs, read_options(raw.builtinOptions), version
    )
    given = tuple(
        at
        for at, value in zip(read, inputs, strict=True)
        if value is not None and value.values is None
    )
    return FileOperator(place, known.name, graph, "", given, known.outputs, arithmetic)


def _known_shape(value: GraphValue | None, result: GraphValue) -> GraphValue | None:
    """Return the shape that is asked for as a constant, which models of Keras compute anew."""
    if value is None or value.values is not None:
        return value
    return value.constant(np.array(result.shape, value.dtype))


def _quantization(known: GraphTensor) -> Quantization | None:
    if not known.scales:
        return None
    if len(set(known.zero_points)) > 1:
        raise _UnreadableTensor("a tensor has more than one zero point")
    return Quantization(known.scales, known.zero_points[0], known.axis)


def _indexes(indexes: Any) -> list[int]:
    return [] if indexes is None else [int(at) for at in indexes]
