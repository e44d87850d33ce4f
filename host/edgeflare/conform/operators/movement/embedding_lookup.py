"""The lookup of rows of a table, whose weights may be of 8 bits in a model of floats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from edgeflare.conform.graphs.operator_graph import GraphValue, OperatorGraph, Option
from edgeflare.conform.operators.movement.movement_specification import MovementSpecification
from edgeflare.conform.specification.exact_answer import EPSILON, ExactAnswer, reals
from edgeflare.conform.specification.operator_specification import (
    DYNAMIC,
    FLOAT,
    INT8,
    Operand,
    OperatorReading,
)
from edgeflare.conform.specification.parameter import OperatorParameter, ScaleParameter
from edgeflare.conform.specification.settings import Configuration

_ZERO_POINT = "input_zero_point"


class EmbeddingLookup(MovementSpecification):
    """The lookup of rows; of dynamic range, rows of 8 bits are answered as floats."""

    def parameters(self, type_: str) -> tuple[OperatorParameter, ...]:
        """Return the parameters of a type."""
        # The zero point of weights is always 0.
        own = super().parameters(type_)
        return (*own, ScaleParameter("input_scale")) if type_ == DYNAMIC else own

    def build(
        self, type_: str, configuration: Configuration, rng: np.random.Generator
    ) -> OperatorGraph:
        """Return the model of a valid configuration."""
        if type_ != DYNAMIC:
            return super().build(type_, configuration, rng)
        graph = super().build(INT8, {**configuration, _ZERO_POINT: 0}, rng)
        (at,) = graph.outputs
        values = list(graph.values)
        values[at] = GraphValue(FLOAT, values[at].shape)
        return replace(graph, values=tuple(values))

    def read(self, graph: OperatorGraph) -> OperatorReading:
        """Return what a model of this one operator is."""
        (node,) = graph.nodes
        if not _is_dynamic(graph.operands(node)[self.data], graph.results(node)):
            return super().read(graph)
        _, settings = self._read(node.options, graph.operands(node))
        kept = {name: one for name, one in settings.items() if name != _ZERO_POINT}
        return OperatorReading(DYNAMIC, kept)

    def exact(
        self,
        options: Mapping[str, Option],
        operands: Sequence[Operand | None],
        results: Sequence[GraphValue],
    ) -> tuple[ExactAnswer, ...]:
        """Return the exact answers."""
        indices, table = operands
        if indices is None or table is None or not _is_dynamic(table.value, results):
            return super().exact(options, operands, results)
        rows = table.real[indices.raw]
        return (reals(rows, EPSILON * np.abs(rows)),)


def _is_dynamic(table: GraphValue | None, results: Sequence[GraphValue]) -> bool:
    return table is not None and table.dtype == INT8 and results[0].dtype == FLOAT
