"""The blocks of a network of convolutions, each as a graph of features and of what connects them.

A block begins and ends where one tensor is all that later operators read. It is a residual block,
or two convolutions behind each other; what is in front of the first one and behind the last one,
such as the layers that decide, belongs to none (§3.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from edgeflare.errors import UserError
from edgeflare.models.graph_parts import crossing_tensors
from edgeflare.models.tflite_graph import Graph, GraphOp

CONVOLUTIONS = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D"})

_ACTIVATIONS = frozenset({"HARD_SWISH", "LOGISTIC", "RELU", "RELU6"})
_POOLS = frozenset({"AVERAGE_POOL_2D", "MAX_POOL_2D"})
_MOVING_ON = CONVOLUTIONS | _ACTIVATIONS | _POOLS | {"PAD"}
"""Operators of a block that read one feature."""

_LEAST_CONVOLUTIONS = 2


@dataclass(frozen=True, slots=True)
class BlockNode:
    """A feature of a block: what is added up from others, and then activated.

    Attributes:
        sum: the tensor that holds the sum.
        value: the tensor that later features are made of: the sum, or what an activation or a pool
            behind it makes.
        maker: position of the operator that writes the sum; -1 of the block's input.
        edges: the chains of operators that the network itself has between an earlier feature and
            the sum, by the number of the feature; an empty one adds the feature as it is.

    """

    sum: int
    value: int
    maker: int
    edges: Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class NetworkBlock:
    """A block of a network.

    Attributes:
        name: "block 1", numbered in execution order.
        operators: positions of its operators, ascending.
        nodes: the features of the block, its input first.

    """

    name: str
    operators: tuple[int, ...]
    nodes: tuple[BlockNode, ...]

    def convolutions(self, graph: Graph) -> tuple[GraphOp, ...]:
        """Return its operators with weights, in execution order."""
        found = (graph.operators[at] for at in self.operators)
        return tuple(operator for operator in found if operator.name in CONVOLUTIONS)


def network_blocks(graph: Graph) -> tuple[NetworkBlock, ...]:
    """Return the blocks of a network, in execution order.

    Raises:
        UserError: it has none, or one has an operator that does not fit into a graph of features.

    """
    runs = list(_runs(graph))
    if not runs:
        raise UserError(
            f"{graph.source} has no two convolutions behind each other, so there is no block whose"
            " operators could be searched: fine-tune it where it was trained"
        )
    return tuple(
        NetworkBlock(
            f"block {number}", tuple(operator.index for operator in run), tuple(_nodes(graph, run))
        )
        for number, run in enumerate(runs, 1)
    )


def _runs(graph: Graph) -> Iterator[list[GraphOp]]:
    """Yield the operators of each block."""
    pending: list[GraphOp] = []
    for segment in _segments(graph):
        convolutions = _count(segment)
        if convolutions >= _LEAST_CONVOLUTIONS:
            pending = []
            yield segment
        elif convolutions or pending:
            pending += segment
        if not all(operator.name in _MOVING_ON | {"ADD"} for operator in segment):
            pending = []
        if _count(pending) >= _LEAST_CONVOLUTIONS:
            yield pending
            pending = []


def _count(operators: Sequence[GraphOp]) -> int:
    return sum(operator.name in CONVOLUTIONS for operator in operators)


def _segments(graph: Graph) -> Iterator[list[GraphOp]]:
    """Yield the operators between each two places where one tensor is all that is read later."""
    segment: list[GraphOp] = []
    ends = graph.outputs[:1]
    for layer in graph.layers[:-1]:
        segment.append(layer)
        if crossing_tensors(graph, layer.index, ends) == layer.outputs[:1]:
            yield segment
            segment = []


def _nodes(graph: Graph, run: Sequence[GraphOp]) -> Iterator[BlockNode]:
    """Yield the features of a block."""
    readers = _readers(graph)
    (given,) = crossing_tensors(graph, run[0].index - 1, graph.outputs[:1])
    nodes = [BlockNode(given, given, -1, {})]
    for operator in run:
        made = operator.outputs[0]
        if operator.name == "ADD" and len(graph.fed(operator)) > 1:
            chains = [_traced(graph, nodes, tensor) for tensor in graph.fed(operator)]
            edges = dict(chains)
            if len(edges) < len(chains):
                _refuse(graph, operator, "it adds a feature to itself")
            nodes.append(BlockNode(made, made, operator.index, edges))
        elif operator.name in CONVOLUTIONS:
            source, chain = _traced(graph, nodes, made)
            if not _is_summand(graph, readers, made):
                nodes.append(BlockNode(made, made, operator.index, {source: chain}))
        elif operator.name not in _MOVING_ON:
            _refuse(graph, operator, "it does not read one feature or add two")
        elif operator.name != "PAD" and readers[(last := nodes[-1]).value] == [operator]:
            nodes[-1] = BlockNode(last.sum, made, last.maker, last.edges)
    yield from nodes


def _readers(graph: Graph) -> dict[int, list[GraphOp]]:
    """Return the operators that read a tensor, by tensor; of an output of the network none."""
    found: dict[int, list[GraphOp]] = {at: [] for at in range(len(graph.tensors))}
    for operator in graph.operators:
        for tensor in set(operator.inputs):
            found[tensor].append(operator)
    return {**found, **{tensor: [] for tensor in graph.outputs}}


def _is_summand(graph: Graph, readers: Mapping[int, list[GraphOp]], tensor: int) -> bool:
    """Whether a tensor is added to another one, and nothing else reads or activates it."""
    maker = graph.operators[graph.made_by[tensor]]
    activated = graph.options(maker.index).get("fusedActivationFunction", 0)
    return not activated and [reader.name for reader in readers[tensor]] == ["ADD"]


def _traced(graph: Graph, nodes: Sequence[BlockNode], tensor: int) -> tuple[int, tuple[int, ...]]:
    """Return the feature that a tensor is made of, and the operators between the two."""
    values = {node.value: number for number, node in enumerate(nodes)}
    chain: list[int] = []
    while tensor not in values:
        operator = graph.operators[graph.made_by[tensor]]
        if operator.name not in _MOVING_ON:
            _refuse(graph, operator, "it does not read one feature or add two")
        chain.append(operator.index)
        (tensor,) = graph.fed(operator)[:1]
    return values[tensor], tuple(reversed(chain))


def _refuse(graph: Graph, operator: GraphOp, why: str) -> None:
    raise UserError(
        f"{graph.source}: operator {operator.index}, {operator.name}, is in a block whose operators"
        f" cannot be searched: {why}"
    )
