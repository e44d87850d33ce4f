"""A graph that takes turns with itself in other shapes, or with a second signature of its file.

In other shapes: an input is three times as long, in its batch, or in its height where an operator
does not take a longer batch, and all that follows from it. A runtime then has to plan its memory
anew, and a kernel to compute anew what it has kept of the shapes. A second signature is the graph
in these other shapes where there are some, else the graph once more; both share all constants, and
the variables if the shapes are the same. A graph that falls in parts, which share no more than
constants, has a signature for the first of them, and one for the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from edgeflare.conform.execution.kernel_arm import PosedModel, Turns
from edgeflare.conform.graphs.graph_trace import compacted
from edgeflare.conform.operator_graph import (
    ABSENT,
    SHARED_NAME,
    GraphNode,
    GraphValue,
    OperatorGraph,
    Values,
)
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.model_parts import ModelParts

_TIMES: Final = 3
"""How many times as long an input becomes: no power of 2, to which allocators round sizes."""

_AXES: Final = (0, 1)
"""Dimensions of inputs that become longer: the batch, else the height."""

_RESHAPE: Final = "RESHAPE"


def taking_turns(model: PosedModel, turns: Turns) -> PosedModel | None:
    """Return a graph with what takes turns with it; None where nothing can.

    Args:
        model: the graph, and what it is given.
        turns: how they take turns.

    """
    return turn_pairs(model, (turns,)).get(turns)


def turn_pairs(model: PosedModel, several: Collection[Turns]) -> dict[Turns, PosedModel]:
    """Return a graph with what takes turns with it, by how they do; without those that cannot.

    A RESHAPE to a fixed shape is one whose first dimension follows from the others then, as
    converters write it where the batch is open. A variable has one shape, so that a graph with one
    takes turns with a second signature alone. A graph that falls in parts takes turns by these.

    Args:
        model: the graph, and what it is given.
        several: how they may take turns; where several are as good, they are one object.

    """
    parted = _in_parts(model) if "parts" in several else None
    if parted is not None:
        return {"parts": parted}
    several = [turns for turns in several if turns != "parts"]
    graph = model.graph
    if not graph.inputs or any(value.variable for value in graph.values):
        return {}
    named = any(SHARED_NAME in node.options for node in graph.nodes)
    found = None if named else _in_other_shapes(model)
    if found is not None:
        return dict.fromkeys(several, found)
    if "signatures" not in several:
        return {}
    first = tuple(_first_in_all(values) for values in model.operands)
    return {"signatures": replace(model, other=replace(model, operands=first, other=None))}


def fall_in_parts(graph: OperatorGraph) -> bool:
    """Return whether operators of a graph share no more than constants with the first of them."""
    return 0 < len(_first_part(graph)) < len(graph.nodes)


def _first_part(graph: OperatorGraph) -> set[int]:
    """Return the places of the operators that hang together with the first one."""
    part, tensors = set[int](), set[int]()
    left = set(range(len(graph.nodes)))
    joining = {0} & left
    while joining:
        part |= joining
        left -= joining
        for place in joining:
            tensors |= _computed(graph, graph.nodes[place])
        joining = {at for at in left if tensors & _computed(graph, graph.nodes[at])}
    return part


def _computed(graph: OperatorGraph, node: GraphNode) -> set[int]:
    """Return the tensors of an operator that are no constants; a variable is none."""
    both = (*node.inputs, *node.outputs)
    return {
        at
        for at in both
        if at != ABSENT and (graph.values[at].values is None or graph.values[at].variable)
    }


def _in_parts(model: PosedModel) -> PosedModel | None:
    """Return the parts of a graph in turn; None of one that keeps a state, and goes on from it."""
    graph = model.graph
    first = _first_part(graph)
    keeping = any(value.variable for value in graph.values) or any(
        SHARED_NAME in node.options for node in graph.nodes
    )
    if keeping or len(first) == len(graph.nodes):
        return None
    rest = set(range(len(graph.nodes))) - first
    own, other = (_part(model, places) for places in (first, rest))
    return None if own is None or other is None else replace(own, other=other)


def _part(model: PosedModel, places: Collection[int]) -> PosedModel | None:
    """Return some operators of a graph; None where they are given nothing, or answer nothing."""
    graph = model.graph
    nodes = tuple(graph.nodes[at] for at in sorted(places))
    own = set[int]().union(*(_computed(graph, node) for node in nodes))
    given = [at for at, tensor in enumerate(graph.inputs) if tensor in own]
    outputs = tuple(at for at in graph.outputs if at in own)
    if not given or not outputs:
        return None
    inputs = tuple(graph.inputs[at] for at in given)
    part = OperatorGraph(graph.values, nodes, inputs, outputs)
    return compacted(PosedModel(part, tuple(model.operands[at] for at in given), model.rows))


def _in_other_shapes(model: PosedModel) -> PosedModel | None:
    graph = model.graph
    for axis in _AXES:
        for inputs in _longer_inputs(graph, axis):
            growth = _Growth.of(graph)
            if not growth.grow(inputs, axis):
                continue
            operands = tuple(
                _longer(values, axis + 1) if at in inputs else values
                for at, values in zip(graph.inputs, model.operands, strict=True)
            )
            own, other = growth.graphs()
            return replace(model, graph=own, other=PosedModel(other, operands))
    return None


def _longer_inputs(graph: OperatorGraph, axis: int) -> Iterator[Collection[int]]:
    """Yield inputs that may become longer: all that are as long as the first, and it alone."""
    first = graph.values[graph.inputs[0]].shape
    if len(first) <= axis or not graph.values[graph.inputs[0]].size:
        return
    alike = {
        at
        for at in graph.inputs
        if len(graph.values[at].shape) == len(first) and graph.values[at].shape[axis] == first[axis]
    }
    yield alike
    if len(alike) > 1:
        yield {graph.inputs[0]}


def _longer(values: Values, axis: int) -> Values:
    """Return rows of a longer input: the row, the first of all rows, and the row again."""
    return np.concatenate([values, _first_in_all(values), values], axis=axis)


def _first_in_all(values: Values) -> Values:
    return np.repeat(values[:1], len(values), axis=0)


@dataclass(slots=True)
class _Growth:
    """A graph some inputs of which become longer.

    Attributes:
        graph: the graph.
        values: tensors of the graph, with constants of its own.
        nodes: operators of the graph, likewise.
        shapes: shapes of tensors that become other ones, by tensor.

    """

    graph: OperatorGraph
    values: list[GraphValue]
    nodes: list[GraphNode]
    shapes: dict[int, tuple[int, ...]]

    @classmethod
    def of(cls, graph: OperatorGraph) -> _Growth:
        """Return a graph before any input becomes longer."""
        return cls(graph, list(graph.values), list(graph.nodes), {})

    def grow(self, inputs: Collection[int], axis: int) -> bool:
        """Make inputs longer, and all that follows from them; False where an operator refuses."""
        for at in inputs:
            shape = list(self.values[at].shape)
            shape[axis] *= _TIMES
            self.shapes[at] = tuple(shape)
        return all(map(self._follow, range(len(self.nodes))))

    def graphs(self) -> tuple[OperatorGraph, OperatorGraph]:
        """Return the graph in its own shapes, and in the other ones."""
        own = replace(self.graph, values=tuple(self.values), nodes=tuple(self.nodes))
        grown = (self._grown(at) for at in range(len(self.values)))
        return own, replace(own, values=tuple(grown))

    def _grown(self, at: int) -> GraphValue:
        value = self.values[at]
        return replace(value, shape=self.shapes[at]) if at in self.shapes else value

    def _follow(self, place: int) -> bool:
        node = self.nodes[place]
        if not any(at in self.shapes for at in node.inputs):
            return True
        if node.operator == _RESHAPE:
            node = self.nodes[place] = self._open(node)
        before = [None if at == ABSENT else self.values[at] for at in node.inputs]
        operands = [None if at == ABSENT else self._grown(at) for at in node.inputs]
        found = _results(node, before, operands, [self.values[at] for at in node.outputs])
        if found is None:
            return False
        for at, value in zip(node.outputs, found, strict=True):
            if value.shape != self.values[at].shape:
                self.shapes[at] = value.shape
        return True

    def _open(self, node: GraphNode) -> GraphNode:
        """Return a RESHAPE with a dimension that follows from the others."""
        option = node.options.get("newShape")
        constant = self.values[node.inputs[1]].values if len(node.inputs) > 1 else None
        if constant is not None and constant.size and (constant > 0).all():
            opened = np.concatenate([[-1], constant[1:]]).astype(constant.dtype)
            self.values.append(self.values[node.inputs[1]].constant(opened))
            return replace(node, inputs=(node.inputs[0], len(self.values) - 1))
        if constant is None and isinstance(option, tuple) and option and min(option) > 0:
            return replace(node, options={**node.options, "newShape": (-1, *option[1:])})
        return node


def _results(
    node: GraphNode,
    before: Sequence[GraphValue | None],
    operands: Sequence[GraphValue | None],
    results: Sequence[GraphValue],
) -> list[GraphValue] | None:
    """Return what an operator writes of other operands, with the options and constants it has.

    Args:
        node: the operator.
        before: the operands that it has.
        operands: the others.
        results: what it writes of those that it has.

    Returns:
        None where it does not take them, or is not known.

    """
    own = _built(node, before, results)
    if own is None:
        return None
    # Where operands are broadcast, the result says how, and is no larger than all of them.
    for shaped in (results, _broadcast(operands, results)):
        other = _built(node, operands, shaped)
        if other is None or not _takes(other, operands, own):
            continue
        found = other.results(other.nodes[0])
        if all(value.size for value in found):
            pairs = zip(results, found, strict=True)
            return [replace(result, shape=value.shape) for result, value in pairs]
    return None


def _broadcast(
    operands: Sequence[GraphValue | None], results: Sequence[GraphValue]
) -> list[GraphValue]:
    """Return results in the shape to which operands are broadcast; as they are for no such."""
    try:
        shape = np.broadcast_shapes(*(value.shape for value in operands if value is not None))
    except ValueError:
        return list(results)
    return [replace(result, shape=shape) for result in results]


def _takes(other: OperatorGraph, operands: Sequence[GraphValue | None], own: OperatorGraph) -> bool:
    """Return whether an operator was built that takes operands, with constants as it had before.

    Some constants follow from shapes, such as that of a result.
    """
    known = (graph.operands(graph.nodes[0]) for graph in (other, own))
    for value, now, before in zip(operands, *known, strict=False):
        if value is None or now is None or before is None:
            if value is not now:
                return False
        elif value.shape != now.shape or (not _equal(before, now)):
            return False
    return True


def _built(
    node: GraphNode, operands: Sequence[GraphValue | None], results: Sequence[GraphValue]
) -> OperatorGraph | None:
    """Return the operator on some operands as its specification builds it, or None."""
    specification = known_operators().get(node.operator)
    if specification is None:
        return None
    try:
        reading = specification.reading(ModelParts.of(node.options, operands, list(results)))
        if specification.invalid(reading.type, reading.configuration) is not None:
            return None
        # The same generator, so that constants are equal that do not follow from the shapes.
        rng = np.random.default_rng(0)
        built = specification.build(reading.type, reading.configuration, rng)
    except Exception:  # shapes that do not fit each other are told in many ways
        return None
    alike = len(built.outputs) == len(results)
    return built if alike and built.nodes[0].options == dict(node.options) else None


def _equal(one: GraphValue, other: GraphValue) -> bool:
    if one.values is None or other.values is None:
        return one.values is other.values
    return np.array_equal(one.values, other.values)
