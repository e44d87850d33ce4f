"""The tensors that the nodes of a draft read and write."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping

import numpy as np

from edgeflare.conform.drafts.draft import DraftNode
from edgeflare.conform.graphs.operator_graph import GraphValue, OperatorGraph
from edgeflare.conform.operators.known_operators import known_operators

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
