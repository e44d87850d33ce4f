"""Parts of a graph, cut out as models of their own.

A part is a `.tflite` file. What its operators read from elsewhere becomes its inputs, what they put
out for elsewhere becomes its outputs; residual connections that cross the cut are among them.
Operators that only prepare constants (a DEQUANTIZE of float16 weights) go with whichever operator
needs them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.models.graph_copy import (
    add_duplicate,
    changeable_copy,
    packed,
    replace_constant,
    rewired,
)
from edgeflare.models.tflite_graph import Graph, GraphOp


@dataclass(frozen=True)
class Part:
    """A part of a graph, cut out as a model of its own.

    Attributes:
        content: the `.tflite` file.
        inputs: which of the graph's tensors its inputs are, in their order; isolated operators that
            read the same tensor name it once each.
        outputs: which of the graph's tensors its outputs are, in their order.

    """

    content: bytes
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def reason_not_cuttable(graph: Graph) -> str:
    """Return why a graph cannot be cut, as the end of a sentence; empty where it can."""
    if any(tensor.isVariable for tensor in graph.model.subgraphs[0].tensors):
        return "it keeps a state from one run to the next"
    for one in graph.layers:
        for tensor in (*graph.fed(one), *one.outputs):
            if not graph.tensors[tensor].dtype:
                return f"tensor {graph.tensors[tensor].name!r} is of a type without numbers"
    return ""


def extract(graph: Graph, first: int, last: int, *, expose: Collection[int] = ()) -> Part:
    """Cut out the operators `first` … `last`, both included.

    Args:
        graph: the whole.
        first: position of the first operator.
        last: position of the last one.
        expose: further tensors that the part is to give, which its operators put out.

    Raises:
        ValueError: there are no such operators, or none of them is reached by the input.
        UserError: the graph cannot be cut.

    """
    if not 0 <= first <= last < len(graph.operators):
        raise ValueError(f"there are no operators {first} … {last}")
    chosen = [one for one in graph.layers if first <= one.index <= last]
    if not chosen:
        raise ValueError(f"the operators {first} … {last} only prepare constants")
    _require_cuttable(graph)
    whole = len(chosen) == len(graph.layers)
    inputs = graph.inputs if whole else _read_from_outside(graph, chosen)
    outputs = graph.outputs if whole else _outputs(graph, chosen)
    outputs = (*outputs, *(tensor for tensor in expose if tensor not in outputs))
    model = changeable_copy(graph)
    main = model.subgraphs[0]
    main.operators = [main.operators[one.index] for one in _with_preparations(graph, chosen)]
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
        chosen: positions of the operators, in execution order.
        constants: other raw values for constants, by tensor; float32 ones take the place of
            quantized ones too.
        linear: leave out fused activations.

    Raises:
        UserError: the graph cannot be cut.

    """
    _require_cuttable(graph)
    model = changeable_copy(graph)
    main = model.subgraphs[0]
    all_operators = main.operators
    operators = [graph.operators[index] for index in chosen]
    inputs: list[int] = []
    main.inputs, main.operators = [], []
    isolated = {one.index for one in operators}
    for one in _with_preparations(graph, operators):
        if one.index not in isolated:
            main.operators.append(all_operators[one.index])
            continue
        given = {tensor: add_duplicate(model, tensor) for tensor in graph.fed(one)}
        main.inputs += given.values()
        inputs += given
        main.operators.append(rewired(all_operators[one.index], given, linear=linear))
    outputs = tuple(tensor for one in operators for tensor in one.outputs)
    main.outputs = list(outputs)
    for tensor, values in (constants or {}).items():
        replace_constant(model, tensor, values)
    return Part(packed(model), tuple(inputs), outputs)


def crossing_tensors(graph: Graph, behind: int, until: int) -> tuple[int, ...]:
    """Return the tensors that the layers behind an operator read from the layers before.

    Args:
        graph: the whole.
        behind: position of the operator.
        until: the tensor at which the last of these layers ends.

    """
    return _read_from_outside(graph, _between(graph, behind, until))


def extract_tails(graph: Graph, behind: Iterable[int], until: int) -> Part:
    """Put tails of the graph into one model, each independent of the others.

    So one run returns what other intermediate values would lead to. The inputs of each end are
    in the order of `crossing_tensors`.

    Args:
        graph: the whole.
        behind: positions of operators; a tail of at least one layer begins behind each.
        until: the tensor at which all of them end.

    Raises:
        UserError: the graph cannot be cut.

    """
    _require_cuttable(graph)
    model = changeable_copy(graph)
    main = model.subgraphs[0]
    all_operators: list[Any] = main.operators
    main.inputs, main.outputs, inputs = [], [], list[int]()
    starts = list(behind)
    longest = _between(graph, min(starts), until)
    main.operators = [
        all_operators[one.index]
        for one in _with_preparations(graph, longest)
        if one.index in graph.preparing
    ]
    for start in starts:
        layers, crossing = _between(graph, start, until), crossing_tensors(graph, start, until)
        made = (tensor for one in layers for tensor in one.outputs)
        copies = {tensor: add_duplicate(model, tensor) for tensor in (*crossing, *made)}
        inputs += crossing
        main.inputs += [copies[tensor] for tensor in crossing]
        main.operators += [rewired(all_operators[one.index], copies) for one in layers]
        main.outputs.append(copies[until])
    return Part(packed(model), tuple(inputs), (until,) * len(starts))


def _require_cuttable(graph: Graph) -> None:
    if why := reason_not_cuttable(graph):
        raise UserError(f"{graph.source} cannot be cut into parts: {why}")


def _between(graph: Graph, behind: int, until: int) -> list[GraphOp]:
    """Return the layers behind an operator, up to the one that makes a tensor."""
    return [one for one in graph.layers if behind < one.index <= graph.made_by[until]]


def _read_from_outside(graph: Graph, chosen: Sequence[GraphOp]) -> tuple[int, ...]:
    """Return the tensors that operators read and none of them makes, in the order of reading."""
    made = {tensor for one in chosen for tensor in one.outputs}
    read = dict.fromkeys(tensor for one in chosen for tensor in graph.fed(one))
    return tuple(tensor for tensor in read if tensor not in made)


def _outputs(graph: Graph, chosen: Sequence[GraphOp]) -> tuple[int, ...]:
    """Return what a part puts out for elsewhere, or for nobody; in the order of its making."""
    inside = {one.index for one in chosen}
    elsewhere = {
        tensor for one in graph.operators if one.index not in inside for tensor in one.inputs
    }
    read = {tensor for one in graph.operators for tensor in one.inputs}
    return tuple(
        dict.fromkeys(
            tensor
            for one in chosen
            for tensor in one.outputs
            if tensor in elsewhere or tensor in graph.outputs or tensor not in read
        )
    )


def _with_preparations(graph: Graph, chosen: Sequence[GraphOp]) -> list[GraphOp]:
    """Add the operators that prepare constants for the chosen ones."""
    needed = {one.index for one in chosen}
    waiting = [tensor for one in chosen for tensor in one.inputs]
    while waiting:
        maker = graph.made_by.get(waiting.pop())
        if maker in graph.preparing and maker not in needed:
            needed.add(maker)
            waiting.extend(graph.operators[maker].inputs)
    return [graph.operators[index] for index in sorted(needed)]
