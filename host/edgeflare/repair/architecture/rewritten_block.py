"""A network whose block has other connections between its features."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import Tensor
from edgeflare.models.graph_parts import changeable_copy, packed
from edgeflare.models.tflite_graph import Graph
from edgeflare.models.tflite_writer import Writer
from edgeflare.repair.architecture.candidate_operators import OperatorToAdd
from edgeflare.repair.architecture.network_blocks import BlockNode, NetworkBlock

ORIGINAL: Final = "original"
"""The connection that the network itself has."""

Edge = tuple[int, int]
"""An earlier and a later feature of a block, by their numbers."""

Connections = Mapping[Edge, Mapping[str, Sequence[OperatorToAdd] | None]]
"""The operators of each connection, by its name and by the features that it connects; None for
those that the network has."""


@dataclass(frozen=True, slots=True)
class BlockConnection:
    """A connection of a rewritten block.

    Attributes:
        edge: the features that it connects.
        name: "sep_conv".
        constants: weights and biases of each of its operators that has some.
        entry: the weights that read each channel of the feature apart, in the last dimension; None
            of an original connection.

    """

    edge: Edge
    name: str
    constants: tuple[tuple[int, ...], ...]
    entry: int | None


@dataclass(frozen=True, slots=True)
class RewrittenBlock:
    """A network after its block was rewritten. What tensors were there have the same indexes.

    Attributes:
        content: the `.tflite` file.
        connections: those of the block.

    """

    content: bytes
    connections: tuple[BlockConnection, ...]


def possible_edges(graph: Graph, block: NetworkBlock) -> Iterator[Edge]:
    """Yield each two features of which the earlier one is known where the later one is made."""
    for later, node in enumerate(block.nodes):
        for earlier in range(later):
            if graph.made_by.get(block.nodes[earlier].value, -1) < node.maker:
                yield earlier, later


def rewritten_block(content: bytes, block: NetworkBlock, wanted: Connections) -> RewrittenBlock:
    """Return a network whose block has other connections.

    Args:
        content: the network's file.
        block: one of its blocks.
        wanted: the connections, at least one with operators to each feature but the first.

    """
    writing = _BlockWriting(content, block)
    for number, node in enumerate(block.nodes):
        if number:
            writing.write_node(number, node, wanted)
    return RewrittenBlock(writing.content(), tuple(writing.connections))


def without_unused(content: bytes) -> bytes:
    """Return a file without the tensors that nothing refers to, and without signatures."""
    return packed(changeable_copy(Graph(content)))


_Emit = Callable[[int | None, int], int]
"""Writes the last operator of a connection, given the tensor that it fills, None for a new one, and
the activation that is fused into it; returns the tensor."""


class _BlockWriting:
    """The operators of a file as those of a block are replaced."""

    def __init__(self, content: bytes, block: NetworkBlock) -> None:
        self._graph, self._block, self._writer = Graph(content), block, Writer(content)
        self._before = list(self._writer.graph.operators)
        self._made: dict[int, list[Any]] = {}
        own = {at for node in block.nodes for chain in node.edges.values() for at in chain}
        self._dropped = own | {node.maker for node in block.nodes}
        self._written: set[int] = set()
        self.connections: list[BlockConnection] = []

    def write_node(self, number: int, node: BlockNode, wanted: Connections) -> None:
        """Write all that makes a feature, in the place of the operator that made it."""
        self._writer.graph.operators = []
        found = [
            self._term(edge, name, operators)
            for edge, by_name in wanted.items()
            if edge[1] == number
            for name, operators in by_name.items()
        ]
        activated = int(self._graph.options(node.maker).get("fusedActivationFunction", 0))
        if len(found) == 1:
            found[0](node.sum, activated)
        else:
            total = found[0](None, 0)
            for position, emit in enumerate(found[1:], 2):
                last = position == len(found)
                total = self._writer.operator(
                    "ADD",
                    (total, emit(None, 0)),
                    node.sum if last else self._like(node.sum),
                    fusedActivationFunction=activated if last else 0,
                )
        self._made[node.maker] = self._writer.graph.operators

    def content(self) -> bytes:
        """Return the file."""
        operators: list[Any] = []
        for at, operator in enumerate(self._before):
            operators += self._made.get(at, [] if at in self._dropped else [operator])
        self._writer.graph.operators = operators
        return self._writer.content()

    def _term(self, edge: Edge, name: str, operators: Sequence[OperatorToAdd] | None) -> _Emit:
        """Write a connection but for its last operator, and return what writes that."""
        source, sum_ = self._block.nodes[edge[0]].value, self._block.nodes[edge[1]].sum
        if operators is not None:
            return self._added(edge, name, operators, source, sum_)
        chain = self._block.nodes[edge[1]].edges[edge[0]]
        constants = tuple(
            operator.inputs[1:]
            for operator in (self._graph.operators[at] for at in chain)
            if len(operator.inputs) > 1 and operator.name != "PAD"
        )
        self.connections.append(BlockConnection(edge, name, constants, None))
        if not chain:
            return lambda _made, _activated: source
        for at in chain[:-1]:
            if at not in self._written:  # two connections may begin with one operator
                self._writer.graph.operators.append(self._before[at])
                self._written.add(at)
        return partial(self._moved, chain[-1], sum_)

    def _moved(self, at: int, like: int, made: int | None, activated: int) -> int:
        """Write an operator of the network itself, which fills a tensor."""
        operator = copy.copy(self._before[at])
        operator.builtinOptions = copy.copy(operator.builtinOptions)
        operator.builtinOptions.fusedActivationFunction = activated
        output = self._like(like) if made is None else made
        operator.outputs = [output]
        self._writer.graph.operators.append(operator)
        return output

    def _added(
        self, edge: Edge, name: str, operators: Sequence[OperatorToAdd], source: int, sum_: int
    ) -> _Emit:
        constants, entry, given = [], None, source
        height, width = self._graph.tensors[source].shape[1:3]
        for place, operator in enumerate(operators):
            label = f"{self._block.name} {edge} {name} {place}".replace(" ", "_")
            own = self._constants(label, operator)
            if own:
                constants.append(own)
            if operator.name == "CONV_2D" and entry is None:
                entry = own[0]
            if place == len(operators) - 1:
                self.connections.append(BlockConnection(edge, name, tuple(constants), entry))
                return partial(self._last, operator, (given, *own), sum_)
            height, width = operator.reached(height, width)
            made = self._writer.tensor(
                Tensor(label, (1, height, width, operator.channels), "float32")
            )
            given = self._operator(operator, (given, *own), made, 0)
        raise ValueError(f"{name} has no operators")

    def _last(
        self,
        operator: OperatorToAdd,
        given: tuple[int, ...],
        like: int,
        made: int | None,
        activated: int,
    ) -> int:
        output = self._like(like) if made is None else made
        return self._operator(operator, given, output, activated)

    def _operator(
        self, operator: OperatorToAdd, given: tuple[int, ...], made: int, activated: int
    ) -> int:
        window = operator.window
        return self._writer.operator(
            operator.name,
            given,
            made,
            version=1,
            padding=window.padding,
            strideH=window.strides[0],
            strideW=window.strides[1],
            fusedActivationFunction=activated,
            **operator.options,
        )

    def _constants(self, label: str, operator: OperatorToAdd) -> tuple[int, ...]:
        if operator.weights is None:
            return ()
        bias = np.zeros(operator.channels, np.float32) if operator.bias is None else operator.bias
        return (
            self._writer.constant(f"{label}_weights", _plain(operator.weights)),
            self._writer.constant(f"{label}_bias", _plain(bias)),
        )

    def _like(self, tensor: int) -> int:
        """Add a tensor of the shape of another one."""
        tensors = self._writer.graph.tensors
        return self._writer.tensor(
            Tensor(
                f"{self._block.name}/{len(tensors)}".replace(" ", "_"),
                self._graph.tensors[tensor].shape,
                "float32",
            )
        )


def _plain(values: Any) -> NDArray[np.float32]:
    return np.ascontiguousarray(values, np.float32)
