"""The operators in a `.tflite` file, each as a graph of its own, whether they are known or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from edgeflare.conform.drafts.file_arithmetic import called_graphs, operator_arithmetic
from edgeflare.conform.graph_file import INTEGER_LSTMS, read_options
from edgeflare.conform.operator_graph import (
    ABSENT,
    SHARED_NAME,
    GraphNode,
    GraphValue,
    OperatorGraph,
    Option,
    Quantization,
    Values,
)
from edgeflare.errors import UserError
from edgeflare.models.model_structure import operator_name
from edgeflare.models.tflite_file import read_model
from edgeflare.models.tflite_graph import Graph, GraphTensor
from edgeflare.untrusted_text import printable

_NO_EXTERNAL_BUFFER = 0

_LONGEST_NAME: Final = 40
"""Characters of the name of a signature or a graph; converters write names of hundreds."""

_HELD: Final = {schema.TensorType.INT4: "int4"}
"""Types that numpy lacks, and that graphs of ours have."""


@dataclass(frozen=True, slots=True)
class FileOperator:
    """An operator in a file.

    Attributes:
        place: position in the graph's order of execution.
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


@dataclass(frozen=True, slots=True)
class FileGraph:
    """A graph of a file that runs when the model does.

    Attributes:
        number: the graph's place in the file; 0 is the main one.
        name: what it is to the user: a signature, or a graph that an operator runs.

    """

    number: int
    name: str


def file_graphs(content: bytes, source: str) -> tuple[FileGraph, ...]:
    """Return the main graph of a file, those of its signatures, and those that their operators run.

    Raises:
        UserError: the file is damaged.

    """
    try:
        return _file_graphs(read_model(content, source))
    except UserError as error:
        raise UserError(f"{error}; name a .tflite file that is whole") from error
    except Exception as error:  # whatever the schema raises on a damaged file
        raise UserError(
            f"{source}: its graphs cannot be read: {error}; name a .tflite file that is whole"
        ) from error


def _file_graphs(model: Any) -> tuple[FileGraph, ...]:
    signatures: dict[int, list[str]] = {}
    for signature in model.signatureDefs or []:
        key = (signature.signatureKey or b"").decode(errors="replace")
        signatures.setdefault(int(signature.subgraphIndex), []).append(_short(key))
    known = range(len(model.subgraphs))
    found, left = set[int](), sorted({0, *signatures}.intersection(known))
    while left:
        found.add(number := left.pop())
        run = (at for raw in model.subgraphs[number].operators or [] for at in called_graphs(raw))
        left += {*run}.intersection(known) - found
    return tuple(
        FileGraph(at, _graph_name(model.subgraphs[at], at, signatures)) for at in sorted(found)
    )


def _graph_name(raw: Any, number: int, signatures: Mapping[int, Sequence[str]]) -> str:
    if named := signatures.get(number):
        return f"signature{'s' if named[1:] else ''} {', '.join(named)}"
    own = _short((raw.name or b"").decode(errors="replace"))
    return f"graph {number}{f' {own}' if own else ''}"


def _short(name: str) -> str:
    told = printable(name)
    return told if len(told) <= _LONGEST_NAME else f"{told[:_LONGEST_NAME]}…"


class _UnreadableTensor(ValueError):  # noqa: N818 - a fact about a model, as the message says
    """A tensor that no graph of ours can have; the message says why."""


def file_operators(content: bytes, source: str, number: int = 0) -> tuple[FileOperator, ...]:
    """Return the operators of a graph of a file.

    Weights that a file has as float16, with an operator that makes them float32, are float32
    constants of whatever reads them, and the operator that does so is left out: runtimes do the
    same when they load the file.

    Args:
        content: the file.
        source: what the user calls it, for messages.
        number: the graph's place in the file; 0 is the main one.

    Raises:
        UserError: the file is damaged, or its weights are not in it.

    """
    try:
        graph = Graph(content, source, number)
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


def file_graph(content: bytes, source: str, number: int = 0) -> OperatorGraph:
    """Return a graph of a file.

    Args:
        content: the file.
        source: what the user calls it, for messages.
        number: the graph's place in the file; 0 is the main one.

    Raises:
        UserError: the file is damaged, its weights are not in it, or it has a tensor or an operator
            that no graph of ours can have.

    """
    try:
        graph = Graph(content, source, number)
        tensors = _Tensors(graph)
        raw = graph.model.subgraphs[number]
        values = tuple(
            GraphValue("uint8", ()) if tensors.is_handle(at) else tensors.value(at)
            for at in range(len(graph.tensors))
        )
        nodes = tuple(
            _node(tensors, at) for at in range(len(graph.operators)) if at not in tensors.folded
        )
        inputs, outputs = tuple(map(int, raw.inputs)), tuple(map(int, raw.outputs))
        return OperatorGraph(values, nodes, inputs, outputs)
    except UserError:
        raise
    except _UnreadableTensor as why:
        raise UserError(f"{source} is no graph that can be taken apart: {why}") from why
    except Exception as error:  # whatever numpy and the schema raise on a damaged file
        raise UserError(f"{source}: its operators cannot be read: {error}") from error


def file_parts(content: bytes, source: str) -> OperatorGraph:
    """Return the graphs of a file of two signatures as one, in which equal buffers are one tensor.

    Raises:
        UserError: see `file_graph`.

    """
    first, second = (file_graph(content, source, number) for number in range(2))
    model = read_model(content, source)
    constants = {
        (int(raw.buffer), value.shape): at
        for at, (raw, value) in enumerate(
            zip(model.subgraphs[0].tensors, first.values, strict=False)
        )
        if value.values is not None
    }
    begin = len(first.values)
    places = {}
    for at, (raw, value) in enumerate(zip(model.subgraphs[1].tensors, second.values, strict=False)):
        places[at] = begin + at
        if value.values is not None:
            places[at] = constants.get((int(raw.buffer), value.shape), begin + at)

    return OperatorGraph(
        (*first.values, *second.values),
        (*first.nodes, *(node.moved(places) for node in second.nodes)),
        (*first.inputs, *(places[at] for at in second.inputs)),
        (*first.outputs, *(places[at] for at in second.outputs)),
    )


def _node(tensors: _Tensors, place: int) -> GraphNode:
    graph = tensors.graph
    raw = graph.model.subgraphs[graph.number].operators[place]
    code = graph.model.operatorCodes[raw.opcodeIndex]
    tensors.check_intermediates(place)
    made = tuple(map(int, raw.outputs))
    read, options = tensors.read(place)
    return GraphNode(operator_name(code), read, made, options, int(code.version))


class _Tensors:
    """The tensors of a file, as values of graphs.

    Attributes:
        graph: the file.
        folded: operators that only make float32 constants of float16 ones, or that name and assign
            `variables`.
        variables: those that are assigned before they are read.
        shared_states: variables that several operators have.

    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._main = graph.model.subgraphs[graph.number]
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
        self.variables = assigned_variables(graph)
        self.folded |= self.variables.folded

    def is_handle(self, at: int) -> bool:
        """Return whether a tensor names a variable that is assigned before it is read."""
        maker = self.graph.made_by.get(at)
        return maker in self.variables.folded

    def read(self, place: int) -> tuple[tuple[int, ...], dict[str, Option]]:
        """Return the tensors that an operator reads, and its options.

        Those of a variable that is assigned before are what it is assigned, and its name.
        """
        if place in self.variables.sources:
            return (self.variables.sources[place],), {SHARED_NAME: self.variables.names[place]}
        raw = self._main.operators[place]
        read = () if raw.inputs is None else tuple(map(int, raw.inputs))
        return read, read_options(raw.builtinOptions)

    def check_intermediates(self, place: int) -> None:
        """Raise _UnreadableTensor where an operator's intermediate tensors say more than its own.

        An LSTM of int8 activations has some, the last of which is quantized as its result.
        """
        known = self._main.operators[place].intermediates
        if known is None or not len(known):
            return
        operator = self.graph.operators[place]
        *others, last = (self.graph.tensors[at] for at in known)
        result = self.graph.tensors[operator.outputs[0]]
        alike = (last.scales, last.zero_points) == (result.scales, result.zero_points)
        if operator.name not in INTEGER_LSTMS or not alike or any(other.scales for other in others):
            raise _UnreadableTensor("it has intermediate tensors")

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
    raw = tensors.graph.model.subgraphs[tensors.graph.number].operators[place]
    read, options = tensors.read(place)
    try:
        inputs = [None if at == ABSENT else tensors.value(at) for at in read]
        outputs = [tensors.value(at) for at in known.outputs]
        tensors.check_intermediates(place)
    except _UnreadableTensor as why:
        return FileOperator(place, known.name, None, str(why), (), known.outputs, arithmetic)
    if known.name == "RESHAPE" and len(inputs) > 1:
        inputs[1] = _known_shape(inputs[1], outputs[0])
    version = int(tensors.graph.model.operatorCodes[raw.opcodeIndex].version)
    graph = OperatorGraph.of_operator(known.name, inputs, outputs, options, version)
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


@dataclass(frozen=True, slots=True)
class AssignedVariables:
    """Variables that keep nothing from one invocation to the next.

    Attributes:
        sources: the tensor that was assigned last before each operator that reads a variable, by
            the operator's place.
        names: the variables' names, likewise.
        folded: places of the operators that name and assign these variables.

    """

    sources: Mapping[int, int]
    names: Mapping[int, str]
    folded: frozenset[int]


def assigned_variables(graph: Graph) -> AssignedVariables:
    """Return the variables of a file each reading of which comes behind an assignment."""
    handles: dict[int, str] = {}
    last: dict[str, int] = {}
    kept: set[str] = set()
    sources: dict[int, int] = {}
    names: dict[int, str] = {}
    parts: dict[int, str] = {}
    for operator in graph.operators:
        if operator.name == "VAR_HANDLE":
            name = graph.options(operator.index)["sharedName"] or b""
            handles[operator.outputs[0]] = parts[operator.index] = name.decode(errors="replace")
            continue
        variable = handles.get(operator.inputs[0], "") if operator.inputs else ""
        if operator.name == "ASSIGN_VARIABLE":
            last[variable], parts[operator.index] = operator.inputs[1], variable
        elif operator.name == "READ_VARIABLE" and variable in last:
            sources[operator.index], names[operator.index] = last[variable], variable
        elif operator.name in ("READ_VARIABLE", "CALL_ONCE"):
            kept.update({variable} if operator.inputs else {*handles.values(), variable})
    return AssignedVariables(
        {at: tensor for at, tensor in sources.items() if names[at] not in kept},
        {at: name for at, name in names.items() if name not in kept},
        frozenset(at for at, name in parts.items() if name in {*names.values()} - kept),
    )
