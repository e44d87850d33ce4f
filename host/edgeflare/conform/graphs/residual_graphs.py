"""Residual sums, concatenations of a tensor with itself, and variables: what comes back.

A sum adds a tensor and what an operator makes of it, which in quantized models have two scales. The
first lives on beside the second, and a delegate that fuses the operator with the sum may take one
for the other. What is given is a batch, no item of which may depend on its neighbours. What was
read of a variable stays as it is when the variable is assigned anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from edgeflare.conform.drafts.cells import Cell, cell_parameters, with_setting
from edgeflare.conform.drafts.draft import DraftNode, node_fed
from edgeflare.conform.graphs.graph_builder import GraphBuilder
from edgeflare.conform.graphs.operator_variants import (
    BATCHES,
    DrawnGraph,
    OperatorVariants,
    Variant,
    base_value,
)
from edgeflare.conform.operator_graph import GraphValue

_TRIES: Final = 16
"""Draws of an operator until it takes what it is to be fed with."""


@dataclass(frozen=True, slots=True)
class ResidualGraphs:
    """Draws sums, concatenations and variables.

    Attributes:
        variants: the ways in which each operator is tried.
        ways: draws settings.

    """

    variants: Mapping[Cell, Sequence[Variant]]
    ways: OperatorVariants

    def sums(self, cell: Cell) -> Iterator[DrawnGraph]:
        """Yield sums of a tensor and of what an operator makes of it, in both orders.

        The tensor is given, or is made by the operator, too; then what is added is answered beside
        the sum. Nothing where no settings keep the shape, or there is no ADD of the type.
        """
        plain, add = self._first(cell), self._first(("ADD", cell[1]))
        if plain is None or add is None:
            return
        for shape in BATCHES:
            builder = GraphBuilder(self.ways.rng, self.ways.graphs)
            given = builder.give(base_value(cell[1], shape))
            made = self._kept(builder, plain.node, given)
            if made is None:
                continue
            again = builder.copy()
            written = self._added(builder, add, {0: given, 1: made})
            if written is not None:
                yield (plain, add), builder.posed(written)
            second = self._kept(again, plain.node, made)
            if second is not None:
                written = self._added(again, add, {0: second, 1: made})
                if written is not None:
                    yield (plain, plain, add), again.posed((second, *written))
            return

    def concatenations(self, cell: Cell) -> Iterator[DrawnGraph]:
        """Yield a concatenation of what an operator makes with itself, alone or beside it."""
        plain, joined = self._first(cell), self._first(("CONCATENATION", cell[1]))
        if plain is None or joined is None:
            return
        builder = GraphBuilder(self.ways.rng, self.ways.graphs)
        made = builder.add_first(plain.node, twice=plain.twice)
        if made is None:
            return
        written = self._added(builder, joined, {0: made[0], 1: made[0]})
        if written is not None:
            beside = made if self.ways.rng.random() < 1 / 2 else ()
            yield (plain, joined), builder.posed((*beside, *written))

    def variables(self, cell: Cell) -> Iterator[DrawnGraph]:
        """Yield a variable that is assigned and read twice, and what was read first read later.

        Nothing where no settings of the operator keep the shape.
        """
        plain, variable = self._first(cell), self._first(("READ_VARIABLE", cell[1]))
        if plain is None or variable is None:
            return
        for shape in BATCHES:
            builder = GraphBuilder(self.ways.rng, self.ways.graphs)
            given = builder.give(base_value(cell[1], shape))
            tensors = [given]
            for node in (plain.node, variable.node, plain.node, variable.node):
                made = self._kept(builder, node, tensors[-1])
                if made is None:
                    break
                tensors.append(made)
            if len(tensors) < 5:
                continue
            later = self._kept(builder, plain.node, tensors[2])
            if later is not None:
                used = (plain, variable, plain, variable, plain)
                yield used, builder.posed((tensors[-1], later))
            return

    def _first(self, cell: Cell) -> Variant | None:
        return next(iter(self.variants.get(cell, ())), None)

    def _added(
        self, builder: GraphBuilder, variant: Variant, reads: Mapping[int, int]
    ) -> tuple[int, ...] | None:
        """Add an operator of two operands, which are other tensors than its variant says."""
        return self.ways.reading(builder, replace(variant, twice=False), reads, _TRIES)

    def _kept(self, builder: GraphBuilder, node: DraftNode, read: int) -> int | None:
        """Add an operator whose result is as what it reads, and return its first result."""
        keeping = self._keeping(node, builder.values[read])
        made = None if keeping is None else builder.add(keeping, {0: read})
        return None if made is None else made[0]

    def _keeping(self, node: DraftNode, value: GraphValue) -> DraftNode | None:
        """Return an operator whose result has the shape and dtype of a tensor that it reads.

        Settings are changed one by one, to what brings the result nearer, or is simpler and brings
        it no further away.
        """
        now = node_fed(node, {0: value}, self.ways.graphs)
        if now is None:
            return None
        for parameter in cell_parameters(node.cell):
            for setting in dict.fromkeys((parameter.simplest, "SAME", value.shape[-1], 1)):
                if not (apart := self._apart(now, value)):
                    return now
                drawn = with_setting(node.cell, now.configuration, parameter.name, setting)
                other = None if drawn is None else replace(now, configuration=drawn)
                fed = None if other is None else node_fed(other, {0: value}, self.ways.graphs)
                plain = setting == parameter.simplest
                if fed is not None and self._apart(fed, value) < apart + plain:
                    now = fed
        return None if self._apart(now, value) else now

    def _apart(self, node: DraftNode, value: GraphValue) -> int:
        """Return in how many ways the result of an operator differs from a tensor."""
        result = self.ways.graphs.result(node)
        if result.dtype != value.dtype or len(result.shape) != len(value.shape):
            return len(value.shape) + 1
        return sum(one != other for one, other in zip(result.shape, value.shape, strict=True))
