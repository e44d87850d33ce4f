"""A model as it is drawn: operators with their configurations, and which of them feeds which.

Nodes have graphs, from which follow the tensors that they read and write. What draws models is a
`DraftSource`, the seam to the rounds that have them run.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from edgeflare.conform.operator_graph import (
    ABSENT,
    GraphNode,
    GraphValue,
    OperatorGraph,
)
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.parameter import Configuration

FRESH = -1
"""Stands in place of a node for a tensor that the model is given."""


@dataclass(frozen=True, slots=True)
class DraftNode:
    """One operator of a draft.

    Attributes:
        operator: the operator's name in the schema.
        type: the operator's type.
        configuration: valid for the type.
        constants: seed of the values of its constants.
        sources: the node whose first result feeds each tensor that the operator alone would be
            given, in order; `FRESH` for none.
        given: the operator's place in the model that the user named, whose constants it has as
            they stand; None for constants that are drawn.

    """

    operator: str
    type: str
    configuration: Configuration
    constants: int
    sources: tuple[int, ...]
    given: int | None = None

    @property
    def cell(self) -> tuple[str, str]:
        """Operator and type."""
        return self.operator, self.type


@dataclass(frozen=True, slots=True)
class Draft:
    """A model of one to eight operators, each fed by operators before it or by the user."""

    nodes: tuple[DraftNode, ...]


@dataclass(frozen=True, slots=True)
class DraftedModel:
    """The graphs of a draft.

    Attributes:
        graph: all of it; its outputs are the results that no node reads.
        alone: each node as a graph of its own, in order.

    """

    graph: OperatorGraph
    alone: tuple[OperatorGraph, ...]


def drafted(draft: Draft, given: Mapping[int, OperatorGraph] | None = None) -> DraftedModel:
    """Return the graphs of a draft.

    Args:
        draft: a draft whose nodes are valid, and each fits what feeds it.
        given: the operators of the model that the user named, by their place in it.

    Raises:
        ValueError: a node is fed with a tensor of another shape, dtype or quantization.

    """
    alone = tuple(_alone(node, given or {}) for node in draft.nodes)
    return DraftedModel(_joined(alone, [node.sources for node in draft.nodes]), alone)


def _alone(node: DraftNode, given: Mapping[int, OperatorGraph]) -> OperatorGraph:
    if node.given is not None:
        return given[node.given]
    rng = np.random.default_rng(node.constants)
    return known_operators()[node.operator].build(node.type, node.configuration, rng)


def _joined(alone: Sequence[OperatorGraph], sources: Sequence[tuple[int, ...]]) -> OperatorGraph:
    values: list[GraphValue] = []
    nodes: list[GraphNode] = []
    inputs: list[int] = []
    results: list[tuple[int, ...]] = []
    for graph, feeding in zip(alone, sources, strict=True):
        places: dict[int, int] = {}
        for at, source in zip(graph.inputs, feeding, strict=True):
            if source != FRESH:
                places[at] = results[source][0]
                _check_fit(values[places[at]], graph.values[at])
        for at, value in enumerate(graph.values):
            if at not in places:
                places[at] = len(values)
                values.append(value)
        inputs.extend(
            places[at] for at, source in zip(graph.inputs, feeding, strict=True) if source == FRESH
        )
        results.append(tuple(places[at] for at in graph.outputs))
        nodes.extend(_placed(node, places) for node in graph.nodes)
    read = {at for node in nodes for at in node.inputs}
    outputs = tuple(at for several in results for at in several if at not in read)
    return OperatorGraph(tuple(values), tuple(nodes), tuple(inputs), outputs)


def _placed(node: GraphNode, places: Mapping[int, int]) -> GraphNode:
    inputs = tuple(ABSENT if at == ABSENT else places[at] for at in node.inputs)
    return replace(node, inputs=inputs, outputs=tuple(places[at] for at in node.outputs))


def _check_fit(made: GraphValue, read: GraphValue) -> None:
    one = (made.dtype, made.shape, made.quantization)
    other = (read.dtype, read.shape, read.quantization)
    if one != other:
        raise ValueError(f"a tensor {one} cannot be read as {other}")


def draft_to_json(draft: Draft) -> list[dict[str, Any]]:
    """Return a draft as plain JSON values, one object for each operator."""
    return [
        {
            "operator": node.operator,
            "type": node.type,
            "settings": dict(node.configuration),
            "constants": node.constants,
            "sources": list(node.sources),
            "given": node.given,
        }
        for node in draft.nodes
    ]


_REMEMBERED = 2000


class NodeGraphs:
    """Builds the graphs of nodes, and remembers some."""

    def __init__(self, given: Mapping[int, OperatorGraph] | None = None) -> None:
        """Begin.

        Args:
            given: the operators of the model that the user named, by their place in it.

        """
        self._given = dict(given or {})
        self._built: OrderedDict[Hashable, OperatorGraph] = OrderedDict()

    def graph(self, node: DraftNode) -> OperatorGraph:
        """Return the graph of a node alone; its configuration is valid."""
        if node.given is not None:
            return self._given[node.given]
        key = (*node.cell, node.constants, *node.configuration.items())
        if key not in self._built:
            rng = np.random.default_rng(node.constants)
            specification = known_operators()[node.operator]
            self._built[key] = specification.build(node.type, node.configuration, rng)
            if len(self._built) > _REMEMBERED:
                self._built.popitem(last=False)
        return self._built[key]

    def operands(self, node: DraftNode) -> tuple[GraphValue, ...]:
        """Return the tensors that a node alone is given."""
        graph = self.graph(node)
        return tuple(graph.values[at] for at in graph.inputs)

    def result(self, node: DraftNode) -> GraphValue:
        """Return the tensor that other nodes may read of a node."""
        graph = self.graph(node)
        return graph.values[graph.outputs[0]]


def fits(made: GraphValue, read: GraphValue) -> bool:
    """Return whether a tensor that one node writes can be what another reads."""
    return (made.dtype, made.shape, made.quantization) == (
        read.dtype,
        read.shape,
        read.quantization,
    )


@dataclass(frozen=True, slots=True)
class DraftOutcome:
    """What became of a draft, as far as drawing needs it.

    Attributes:
        nodes: whether the device took each node alone; one that crashes it or answers wrongly was
            taken. None where nobody knows, since what feeds it gave no answer, or the draft was not
            run.
        whole: whether the device took the model of all nodes.

    """

    nodes: tuple[bool | None, ...]
    whole: bool

    @classmethod
    def not_run(cls, draft: Draft) -> DraftOutcome:
        """Return the outcome of a draft that was left out, of which nobody knows anything."""
        return cls((None,) * len(draft.nodes), whole=False)


class DraftSource(Protocol):
    """Draws models one after the other.

    What is drawn depends on the generator that it was made with and on what it was told, so that
    a run is resumed by telling it the same again.
    """

    def ask(self, count: int) -> list[Draft]:
        """Return the next models, fewer than asked for only where there are no more."""

    def tell(self, drafts: Sequence[Draft], outcomes: Sequence[DraftOutcome]) -> None:
        """Take what became of models that were asked for, in any order."""
