"""Copies of a graph that can be changed, and parts of it, cut out as models of their own.

A part is a `.tflite` file. What its operators read from elsewhere becomes its inputs, what they put
out for elsewhere becomes its outputs; residual connections that cross the cut are among them.
Operators that only prepare constants (a DEQUANTIZE of float16 weights) go with whichever operator
needs them.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import flatbuffers  # type: ignore[import-untyped]
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import Graph, GraphOp, tensor_indexes

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


@dataclass(frozen=True)
class Part:
    """A part of a graph, cut out as a model of its own.

    Attributes:
        content: the `.tflite` file.
        inputs: indexes of the graph's tensors that its inputs are, in their order; isolated
            operators that read the same tensor name it once each.
        outputs: indexes of the graph's tensors that its outputs are, in their order.

    """

    content: bytes
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def extract(graph: Graph, first: int, last: int, *, expose: Collection[int] = ()) -> Part:
    """Cut out the operators `first` … `last`, both included.

    Args:
        graph: the whole.
        first: position of the first operator.
        last: position of the last one.
        expose: further tensors that the part is to give, which its operators put out.

    Raises:
        ValueError: there are no such operators, or none of them is reached by the input.
        UserError: an input or an output of the part cannot be read.

    """
    if not 0 <= first <= last < len(graph.operators):
        raise ValueError(f"there are no operators {first} … {last}")
    chosen = [layer for layer in graph.layers if first <= layer.index <= last]
    if not chosen:
        raise ValueError(f"the operators {first} … {last} only prepare constants")
    whole = len(chosen) == len(graph.layers)
    inputs = graph.inputs if whole else _read_from_outside(graph, chosen)
    outputs = graph.outputs if whole else _outputs(graph, chosen)
    outputs = (*outputs, *(tensor for tensor in expose if tensor not in outputs))
    _require_readable(graph, (*inputs, *outputs))
    model = changeable_copy(graph)
    main = model.subgraphs[0]
    main.operators = [
        main.operators[operator.index] for operator in _with_preparations(graph, chosen)
    ]
    main.inputs, main.outputs = list(inputs), list(outputs)
    return Part(packed(model), inputs, outputs)


def isolate(
    graph: Graph,
    chosen: Iterable[int],
    constants: Mapping[int, NDArray[np.generic]] | None = None,
    *,
    linear: bool = False,
) -> Part:
    """Put operators into one model, each independent of the others with inputs of its own.

    So one run returns what each of them does with given inputs. Each has inputs of its own, in the
    order of `Graph.fed`, also where several read the same tensor.

    Args:
        graph: the whole.
        chosen: positions of the operators, in any order.
        constants: other raw values for constants, or for what is prepared from them, by tensor;
            float32 ones take the place of quantized ones too.
        linear: leave out fused activations.

    Raises:
        UserError: an input or an output of the part cannot be read.

    """
    model = changeable_copy(graph)
    main = model.subgraphs[0]
    all_operators = main.operators
    operators = [graph.operators[index] for index in chosen]
    inputs: list[int] = []
    main.inputs, main.operators = [], []
    constants = constants or {}
    isolated = {operator.index for operator in operators}
    prepared = _with_preparations(graph, operators, constants.keys())
    main.operators = [
        all_operators[operator.index] for operator in prepared if operator.index not in isolated
    ]
    for operator in operators:
        given = {tensor: add_duplicate(model, tensor) for tensor in graph.fed(operator)}
        main.inputs += given.values()
        inputs += given
        main.operators.append(rewired(all_operators[operator.index], given, linear=linear))
    outputs = tuple(tensor for operator in operators for tensor in operator.outputs)
    _require_readable(graph, (*inputs, *outputs))
    main.outputs = list(outputs)
    for tensor, values in constants.items():
        replace_constant(model, tensor, values)
    return Part(packed(model), tuple(inputs), outputs)


def readable_outputs(graph: Graph, layers: Iterable[GraphOp]) -> list[int]:
    """Return the tensors that layers put out and that can be read."""
    made = [tensor for layer in layers for tensor in layer.outputs]
    return [tensor for tensor in made if graph.tensors[tensor].dtype]


def is_readable(graph: Graph, first: int, last: int) -> bool:
    """Whether all that the operators `first` … `last` put out for elsewhere can be read."""
    ends = _outputs(graph, [layer for layer in graph.layers if first <= layer.index <= last])
    return bool(ends) and all(graph.tensors[tensor].dtype for tensor in ends)


def crossing_tensors(graph: Graph, behind: int, until: Collection[int]) -> tuple[int, ...]:
    """Return the tensors that the layers behind an operator read from the layers before.

    Args:
        graph: the whole.
        behind: position of the operator.
        until: the tensors at which these layers end.

    """
    return _read_from_outside(graph, _between(graph, behind, until))


def tail_ends(graph: Graph, behind: int, until: Collection[int]) -> tuple[int, ...]:
    """Return which of some tensors are made behind an operator."""
    return tuple(tensor for tensor in until if graph.made_by[tensor] > behind)


def extract_tails(graph: Graph, behind: Iterable[int], until: Collection[int]) -> Part:
    """Put tails of the graph into one model, each independent of the others.

    So one run returns what other intermediate values would lead to. The inputs of each tail are
    in the order of `crossing_tensors`, its outputs in that of `tail_ends`.

    Args:
        graph: the whole.
        behind: positions of operators; a tail of at least one layer begins behind each.
        until: the tensors at which all of them end, each made by an operator.

    Raises:
        UserError: an input or an output of the part cannot be read.

    """
    model = changeable_copy(graph)
    main = model.subgraphs[0]
    all_operators: list[Any] = main.operators
    main.inputs, main.outputs, inputs, outputs = [], [], list[int](), list[int]()
    starts = list(behind)
    longest = _between(graph, min(starts), until)
    main.operators = [
        all_operators[operator.index]
        for operator in _with_preparations(graph, longest)
        if operator.index in graph.preparing
    ]
    for start in starts:
        layers, crossing = _between(graph, start, until), crossing_tensors(graph, start, until)
        _require_readable(graph, crossing)
        made = [tensor for layer in layers for tensor in layer.outputs]
        kept = {t for layer in layers for t in layer.inputs if graph.tensors[t].variable}
        copies = {tensor: add_duplicate(model, tensor) for tensor in (*crossing, *made, *kept)}
        inputs += crossing
        main.inputs += [copies[tensor] for tensor in crossing]
        main.operators += [rewired(all_operators[layer.index], copies) for layer in layers]
        ends = tail_ends(graph, start, until)
        outputs += ends
        main.outputs += [copies[tensor] for tensor in ends]
    return Part(packed(model), tuple(inputs), tuple(outputs))


def _require_readable(graph: Graph, ends: Iterable[int]) -> None:
    for tensor in ends:
        if not graph.tensors[tensor].dtype:
            raise UserError(
                f"{graph.source} cannot be cut here: {graph.describe(tensor)} cannot be read"
            )


def _between(graph: Graph, behind: int, until: Collection[int]) -> list[GraphOp]:
    """Return the layers behind an operator, up to the last one that makes one of some tensors."""
    last = max(graph.made_by[tensor] for tensor in until)
    return [layer for layer in graph.layers if behind < layer.index <= last]


def _read_from_outside(graph: Graph, chosen: Sequence[GraphOp]) -> tuple[int, ...]:
    """Return the tensors that operators read and none of them makes, in the order of reading."""
    made = {tensor for operator in chosen for tensor in operator.outputs}
    read = dict.fromkeys(tensor for operator in chosen for tensor in graph.fed(operator))
    return tuple(tensor for tensor in read if tensor not in made)


def _outputs(graph: Graph, chosen: Sequence[GraphOp]) -> tuple[int, ...]:
    """Return what a part puts out for elsewhere, or for nobody; in the order of its making."""
    inside = {operator.index for operator in chosen}
    elsewhere = {
        tensor
        for operator in graph.operators
        if operator.index not in inside
        for tensor in operator.inputs
    }
    read = {tensor for operator in graph.operators for tensor in operator.inputs}
    return tuple(
        dict.fromkeys(
            tensor
            for operator in chosen
            for tensor in operator.outputs
            if tensor in elsewhere or tensor in graph.outputs or tensor not in read
        )
    )


def _with_preparations(
    graph: Graph, chosen: Sequence[GraphOp], known: Collection[int] = ()
) -> list[GraphOp]:
    """Add the operators that prepare constants for the chosen ones, except tensors in `known`."""
    needed = {operator.index for operator in chosen}
    waiting = [tensor for operator in chosen for tensor in operator.inputs if tensor not in known]
    while waiting:
        maker = graph.made_by.get(waiting.pop())
        if maker in graph.preparing and maker not in needed:
            needed.add(maker)
            waiting.extend(graph.operators[maker].inputs)
    return [graph.operators[index] for index in sorted(needed)]
