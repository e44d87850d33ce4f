"""The operators in a `.tflite` file, each as a graph of its own, whether they are known or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from edgeflare.conform.graph_file import read_options
from edgeflare.conform.operator_graph import (
    ABSENT,
    GraphNode,
    GraphValue,
    OperatorGraph,
    Quantization,
    Values,
)
from edgeflare.conform.operators.operator_catalogue import MOVEMENT_OPERATORS
from edgeflare.errors import UserError
from edgeflare.models.model_structure import operator_name
from edgeflare.models.tflite_graph import Graph, GraphTensor

_Shapes = list[tuple[int, ...]]

_MOVES: Final = frozenset(
    {
        *(specification.operator for specification in MOVEMENT_OPERATORS),
        *("ASSIGN_VARIABLE", "CALL_ONCE", "DENSIFY", "READ_VARIABLE", "SPARSE_TO_DENSE"),
        *("VAR_HANDLE",),
    }
)
"""Operators that move values and compute none."""

_REDUCTIONS: Final = frozenset(
    {
        *("ARG_MAX", "ARG_MIN", "MEAN", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN"),
        *("REDUCE_PROD", "SUM"),
    }
)
"""Operators that take each value that they read once."""

_RECURRENT: Final = frozenset(
    {
        *("BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN", "LSTM", "RNN", "SVDF"),
        *("UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN"),
    }
)
"""Operators that take each of their weights once at each step."""

_MATRIX: Final = 2
"""Dimensions of a recurrent operator's weights; its biases have one."""

_POOLS: Final = frozenset({"AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"})

_SUMS: Final[Mapping[str, Callable[[_Shapes, tuple[int, ...]], int]]] = {
    # Of the results or, where these are scattered to, of the inputs: how many products each has.
    "CONV_2D": lambda read, made: prod(made) * prod(read[1][1:]),
    "DEPTHWISE_CONV_2D": lambda read, made: prod(made) * prod(read[1][:-1]),
    "FULLY_CONNECTED": lambda read, made: prod(made) * read[1][-1],
    "CONV_3D": lambda read, made: prod(made) * prod(read[1][:-1]),
    "TRANSPOSE_CONV": lambda read, _: prod(read[2]) * prod(read[1][:-1]),
    "CONV_3D_TRANSPOSE": lambda read, _: prod(read[2]) * prod(read[1][:-1]),
}

_NO_EXTERNAL_BUFFER = 0

_HELD: Final = {schema.TensorType.INT4: "int4"}
"""Types that numpy lacks, and that graphs of ours have."""


@dataclass(frozen=True, slots=True)
class FileOperator:
    """An operator in a file.

    Attributes:
        place: position in the file's order of execution.
        name: name in the schema, or a custom operator's own.
        graph: the operator alone, with its constants; None where it cannot stand alone.
        reason: why it cannot; empty if it can.
        reads: the tensors of the file that the graph is given, in order.
        writes: the tensors of the file that it answers, in order.
        arithmetic: multiply-accumulates; see `operator_arithmetic`.

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


def file_graph(content: bytes, source: str) -> OperatorGraph:
    """Return a file's main graph.

    Raises:
        UserError: the file is damaged, its weights are not in it, or it has a tensor or an operator
            that no graph of ours can have.

    """
    try:
        graph = Graph(content, source)
        tensors = _Tensors(graph)
        raw = graph.model.subgraphs[0]
        values = tuple(tensors.value(at) for at in range(len(graph.tensors)))
        nodes = tuple(
            _node(graph, at) for at in range(len(graph.operators)) if at not in tensors.folded
        )
        inputs, outputs = tuple(map(int, raw.inputs)), tuple(map(int, raw.outputs))
        return OperatorGraph(values, nodes, inputs, outputs)
    except UserError:
        raise
    except _UnreadableTensor as why:
        raise UserError(f"{source} is no graph that can be taken apart: {why}") from why
    except Exception as error:  # whatever numpy and the schema raise on a damaged file
        raise UserError(f"{source}: its operators cannot be read: {error}") from error


def _node(graph: Graph, place: int) -> GraphNode:
    raw = graph.model.subgraphs[0].operators[place]
    code = graph.model.operatorCodes[raw.opcodeIndex]
    if raw.intermediates is not None and len(raw.intermediates):
        raise _UnreadableTensor(f"{operator_name(code)} has intermediate tensors")
    read = () if raw.inputs is None else tuple(map(int, raw.inputs))
    options = read_options(raw.builtinOptions)
    made = tuple(map(int, raw.outputs))
    return GraphNode(operator_name(code), read, made, options, int(code.version))


class _Tensors:
    """The tensors of a file, as values of graphs.

    Attributes:
        graph: the file.
        folded: operators that only make float32 constants of float16 ones.
        shared_states: variables that several operators have.

    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._main = graph.model.subgraphs[0]
        self._written = {at for operator in graph.operators for at in operator.outputs}
        self._check_place_of_weights()
        readers = Counter(at for operator in graph.operators for at in {*operator.inputs})
        self.shared_states = frozenset(
            tensor.index
            for tensor in graph.tensors
            if tensor.variable and readers[tensor.index] > 1
        )
        self.folded = frozenset(
            operator.index
            for operator in graph.operators
            if operator.name == "DEQUANTIZE"
            and graph.tensors[operator.inputs[0]].constant
            and graph.tensors[operator.inputs[0]].dtype == "float16"
        )
        self._halves = {
            graph.operators[at].outputs[0]: graph.operators[at].inputs[0] for at in self.folded
        }

    def value(self, at: int) -> GraphValue:
        """Return a tensor; _UnreadableTensor where it is none of ours."""
        known, raw = self.graph.tensors[at], self._main.tensors[at]
        dtype = known.dtype or _HELD.get(known.type, "")
        if not dtype:
            raise _UnreadableTensor(f"a tensor is of type {known.type_name}, which is not tested")
        if raw.sparsity is not None:
            raise _UnreadableTensor("its weights are stored as sparse ones")
        value = GraphValue(dtype, known.shape, self._quantization(known, raw))
        if raw.isVariable:
            if at in self.shared_states:
                raise _UnreadableTensor("it shares a state with another operator")
            return value.state()
        values = self._values(at)
        return value if values is None else value.constant(values.reshape(known.shape))

    def _quantization(self, known: GraphTensor, raw: Any) -> Quantization | None:
        stored = raw.quantization
        if (
            stored is not None
            and stored.detailsType == schema.QuantizationDetails.BlockwiseQuantization
        ):
            return self._blocks(known, stored.details)
        if not known.scales:
            return None
        if len(set(known.zero_points)) > 1:
            raise _UnreadableTensor("a tensor has more than one zero point")
        return Quantization(known.scales, known.zero_points[0], known.axis)

    def _blocks(self, known: GraphTensor, details: Any) -> Quantization:
        block = int(details.blockSize)
        if len(known.shape) != 2 or block < 1 or known.shape[1] % block:
            raise _UnreadableTensor(f"a tensor of {known.shape} has blocks of {block}")
        scales = self.graph.values(int(details.scales)).astype(np.float64).ravel()
        if len(scales) * block != known.size or details.zeroPoints > 0:
            raise _UnreadableTensor("blocks of a tensor have not one scale each, or zero points")
        return Quantization(tuple(scales.tolist()), block=block)

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

    def _check_place_of_weights(self) -> None:
        read = {at for operator in self.graph.operators for at in operator.inputs}
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
    read = [] if raw.inputs is None else [int(at) for at in raw.inputs]
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


def operator_arithmetic(graph: Graph) -> tuple[int, ...]:
    """Return how many multiply-accumulates each operator of a file's main graph takes.

    Sums of products are counted by their products, pools by the values of their windows, reductions
    by the values that they read, recurrent operators by their weights at each step, and all others
    that compute by the values that they write. Moving values is no arithmetic, and neither is
    preparing constants. An operator that runs other graphs of the file, such as WHILE, has the
    arithmetic of these, run once: how often they are is known when the model runs.
    """
    count = _Count(graph.model)
    return tuple(
        0 if operator.index in graph.preparing else count.operator(0, operator.index)
        for operator in graph.operators
    )


class _Count:
    """Counts in the graphs of a file."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._within: list[int] = []

    def operator(self, graph: int, place: int) -> int:
        """Return the arithmetic of an operator of one of the graphs."""
        subgraph = self._model.subgraphs[graph]
        raw = subgraph.operators[place]
        name = operator_name(self._model.operatorCodes[raw.opcodeIndex])
        if name in _MOVES:
            return 0
        if called := list(_called(raw)):
            return sum(map(self._graph, called))
        read, made = (_shapes(subgraph, of) for of in (raw.inputs, raw.outputs))
        try:
            return _of_shapes(name, raw.builtinOptions, read, made)
        except (AttributeError, IndexError):  # shapes that are known once the model runs
            return sum(map(prod, made))

    def _graph(self, at: int) -> int:
        if at in self._within or not 0 <= at < len(self._model.subgraphs):
            return 0  # no runtime takes a graph that runs itself
        self._within.append(at)
        places = range(len(self._model.subgraphs[at].operators))
        counted = sum(self.operator(at, place) for place in places)
        self._within.pop()
        return counted


def _of_shapes(name: str, options: Any, read: _Shapes, made: _Shapes) -> int:
    """Return the arithmetic of an operator that runs no other graph and does not only move."""
    results = sum(map(prod, made))
    if name in _SUMS:
        return _SUMS[name](read, made[0])
    if name == "BATCH_MATMUL":
        return results * read[0][-2 if options.adjX else -1]
    if name in _POOLS:
        return results * int(options.filterHeight) * int(options.filterWidth)
    if name in _REDUCTIONS:
        return max(results, prod(read[0]))
    if name in _RECURRENT:
        weights = sum(prod(shape) for shape in read[1:] if len(shape) == _MATRIX)
        return max(results, prod(read[0][:-1]) * weights)
    return results


def _called(raw: Any) -> Iterator[int]:
    """Yield the graphs of the file that an operator runs."""
    for options in (raw.builtinOptions, raw.builtinOptions2):
        for key, value in vars(options).items() if options is not None else ():
            if "subgraph" in key.lower():
                yield int(value)


def _shapes(subgraph: Any, tensors: Any) -> _Shapes:
    """Return the shapes of some tensors; that of an absent one, or of a state, is empty."""
    found = [
        None if at < 0 else subgraph.tensors[at] for at in ([] if tensors is None else tensors)
    ]
    return [
        ()
        if tensor is None or tensor.isVariable or tensor.shape is None
        else tuple(1 if size < 0 else int(size) for size in tensor.shape)
        for tensor in found
    ]
