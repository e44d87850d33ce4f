"""A graph that grows operator by operator, with what it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from edgeflare.conform.drafts.draft import DraftNode, NodeGraphs, fits, node_fed
from edgeflare.conform.execution.kernel_arm import PosedModel
from edgeflare.conform.operator_graph import (
    ABSENT,
    GraphNode,
    GraphValue,
    OperatorGraph,
    Values,
)
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.activation_tensors import OperandStyle, operand_values

_STYLES: Final[tuple[OperandStyle, ...]] = ("uniform", "uniform")
"""Values of the two rows that a graph is given: each row is an invocation, the second of which
finds what the first has left. Special values would show as undefined."""


@dataclass(slots=True)
class GraphBuilder:
    """A graph that grows.

    Attributes:
        rng: draws the values that it is given.
        graphs: builds the operators.
        values: the tensors.
        nodes: the operators.
        operands: what the graph is given, by tensor: (rows, *shape).

    """

    rng: np.random.Generator
    graphs: NodeGraphs
    values: list[GraphValue] = field(default_factory=list)
    nodes: list[GraphNode] = field(default_factory=list)
    operands: dict[int, Values] = field(default_factory=dict)

    def give(self, value: GraphValue) -> int:
        """Add a tensor that the graph is given, with values that are drawn, and return it."""
        return self._given(value, [operand_values(value, style, self.rng) for style in _STYLES])

    def _given(self, value: GraphValue, rows: Sequence[Values]) -> int:
        self.values.append(value)
        self.operands[len(self.values) - 1] = np.stack(rows)
        return len(self.values) - 1

    def add(
        self, node: DraftNode, reads: Mapping[int, int], *, shared: bool = False
    ) -> tuple[int, ...] | None:
        """Add an operator, and return the tensors that it writes.

        Args:
            node: the operator.
            reads: the tensors that it reads, by which of its given operands they are; it is given
                the others.
            shared: whether its constants may be those of another operator.

        Returns:
            None, with nothing added, where it cannot be fed so, or a tensor would have no values.

        """
        values = {at: self.values[tensor] for at, tensor in reads.items()}
        fed = node_fed(node, values, self.graphs) if values else node
        if fed is None:
            return None
        graph = self.graphs.graph(fed)
        if any(graph.values[at].size == 0 for at in (*graph.inputs, *graph.outputs)):
            return None  # nothing to be wrong
        specification = known_operators()[fed.operator]
        rows = [specification.operands(graph, style, self.rng) for style in _STYLES]
        places: dict[int, int] = {}
        for at, tensor in enumerate(graph.inputs):
            given = [row[at] for row in rows]
            places[tensor] = reads[at] if at in reads else self._given(graph.values[tensor], given)
        for tensor, value in enumerate(graph.values):
            if tensor not in places:
                places[tensor] = self._constant(value) if shared else ABSENT
            if places[tensor] == ABSENT:
                self.values.append(value)
                places[tensor] = len(self.values) - 1
        (alone,) = graph.nodes
        self.nodes.append(alone.moved(places))
        return self.nodes[-1].outputs

    def add_first(self, node: DraftNode, *, twice: bool = False) -> tuple[int, ...] | None:
        """Add an operator that is given all that it reads, and return the tensors that it writes.

        Args:
            node: the operator.
            twice: whether its first two operands are the same tensor.

        Returns:
            None, where a tensor would have no values.

        """
        if not twice:
            return self.add(node, {})
        graph = self.graphs.graph(node)
        specification = known_operators()[node.operator]
        rows = [specification.operands(graph, style, self.rng)[0] for style in _STYLES]
        tensor = self._given(graph.values[graph.inputs[0]], rows)
        return self.add(node, {0: tensor, 1: tensor})

    def _constant(self, value: GraphValue) -> int:
        """Return a constant that is equal to a value, or `ABSENT`; states are never shared."""
        if value.values is None or value.variable:
            return ABSENT
        for at, other in enumerate(self.values):
            if (
                other.values is not None
                and not other.variable
                and fits(other, value)
                and np.array_equal(other.values, value.values)
            ):
                return at
        return ABSENT

    def posed(self, outputs: Sequence[int]) -> PosedModel:
        """Return the graph with what it is given, answering some of its tensors."""
        inputs = tuple(sorted(self.operands))
        graph = OperatorGraph(tuple(self.values), tuple(self.nodes), inputs, tuple(outputs))
        return PosedModel(graph, tuple(self.operands[at] for at in inputs), len(_STYLES))

    def copy(self) -> GraphBuilder:
        """Return the graph as it is, which grows by itself."""
        return replace(
            self, values=list(self.values), nodes=list(self.nodes), operands=dict(self.operands)
        )
