"""Graphs of any operators, drawn at random: up to ten, chains of views, and two graphs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.drafts.draft import NodeGraphs, fits
from edgeflare.conform.execution.kernel_arm import PosedModel
from edgeflare.conform.graphs.graph_arrangement import VIEWS
from edgeflare.conform.graphs.graph_builder import GraphBuilder
from edgeflare.conform.graphs.operator_variants import (
    BATCHES,
    SHAPES,
    DrawnGraph,
    OperatorVariants,
    Variant,
    base_value,
)
from edgeflare.conform.operator_graph import GraphNode
from edgeflare.conform.specification.activation_tensors import DTYPES

_FIRST_VIEW: Final = 2 / 3
"""Share of chains of views in which the first view is read later, and not what it is a view of."""

_MOST_NODES: Final = 10
"""Operators of a drawn graph."""

_MOST_EACH: Final = 4
"""Operators of each of two graphs that are drawn, besides the one that both have, and one more."""

_MOST_SIZE: Final = 2048
"""Values of a tensor in a drawn graph."""


@dataclass(slots=True)
class RandomGraphs:
    """Draws graphs of any operators that the device takes, and chains of views of them.

    Attributes:
        rng: every draw.
        graphs: builds operators.
        cells: operators and types that the device takes, and that have variants.
        variants: the ways in which each is tried.

    """

    rng: np.random.Generator
    graphs: NodeGraphs
    cells: Sequence[Cell]
    variants: Mapping[Cell, Sequence[Variant]]

    def draw(self, type_: str) -> DrawnGraph | None:
        """Return a graph that begins with values of a type, or None."""
        builder = GraphBuilder(self.rng, self.graphs)
        shapes = (*SHAPES, *BATCHES)
        value = base_value(type_, shapes[int(self.rng.integers(len(shapes)))])
        pool = [builder.give(value) for _ in range(int(self.rng.integers(1, 3)))]
        used, read = self._grown(builder, pool, int(self.rng.integers(2, _MOST_NODES + 1)))
        if len(used) < 2:
            return None
        return tuple(used), self._posed(builder, read)

    def draw_two(self, shared: Variant) -> DrawnGraph | None:
        """Return two graphs that share the constants of an operator, and no more; or None.

        The operator is the first of one graph, and somewhere in the other.

        Args:
            shared: the operator, with constants.

        """
        builder = GraphBuilder(self.rng, self.graphs)
        value = self.graphs.operands(shared.node)[0]
        begun = builder.add_first(shared.node)
        if begun is None:
            return None
        first, read = self._grown(builder, begun, int(self.rng.integers(_MOST_EACH)))
        before = len(builder.nodes)
        pool = [builder.give(value)]
        second, more = self._grown(builder, pool, int(self.rng.integers(_MOST_EACH)))
        alike = [at for at in pool if fits(builder.values[at], value)]
        tensor = alike[int(self.rng.integers(len(alike)))]
        if builder.add(shared.node, {0: tensor}, shared=True) is None:
            return None
        used = (shared, *first, *second, shared)
        both = builder.nodes[:before], builder.nodes[before:]
        outputs = [self._outputs(nodes, read | more | {tensor}) for nodes in both]
        return used, builder.posed([at for several in outputs for at in several])

    def _grown(
        self, builder: GraphBuilder, begun: Sequence[int], wanted: int
    ) -> tuple[list[Variant], set[int]]:
        """Add operators to a graph; return them, and the tensors that they read.

        Args:
            builder: the graph.
            begun: tensors that they may read; those that they write are added if it is a list.
            wanted: how many operators.

        """
        pool = begun if isinstance(begun, list) else list(begun)
        used: list[Variant] = []
        read: set[int] = set()
        views = 0.6 if self.rng.random() < 0.6 else 0.1
        for _ in range(3 * wanted):
            if len(used) == wanted:
                break
            variant, reads = self._next(builder, pool, views)
            if variant is None:
                continue
            written = builder.add(variant.node, reads, shared=self.rng.random() < 0.5)
            if written is not None:
                used.append(variant)
                pool += [at for at in written if builder.values[at].size <= _MOST_SIZE]
                read.update(reads.values())
        return used, read

    def _next(
        self, builder: GraphBuilder, pool: Sequence[int], views: float
    ) -> tuple[Variant | None, dict[int, int]]:
        """Return an operator to add, and which tensors of the graph it reads."""
        # Mostly the last ones, so that chains come about, and now and then an earlier one.
        back = min(int(self.rng.geometric(0.4)), len(pool))
        tensor = pool[-back]
        dtype = builder.values[tensor].dtype
        fitting = self._taking(dtype)
        if self.rng.random() < views:
            fitting = [cell for cell in fitting if cell[0] in VIEWS] or fitting
        if not fitting:
            return None, {}
        cell = fitting[int(self.rng.integers(len(fitting)))]
        several = self.variants[cell]
        variant = several[int(self.rng.integers(len(several)))]
        if self.rng.random() < 0.5:
            variant = OperatorVariants(self.rng, self.graphs).other_settings(variant)
        reads = {0: tensor}
        if variant.twice:
            like = [at for at in pool if fits(builder.values[at], builder.values[tensor])]
            reads[1] = like[int(self.rng.integers(len(like)))]
        return variant, reads

    def _posed(self, builder: GraphBuilder, read: set[int]) -> PosedModel:
        """Return the graph, which answers some of its results, one of them twice now and then."""
        results = [at for node in builder.nodes for at in node.outputs]
        outputs = self._outputs(builder.nodes, read)
        if self.rng.random() < 1 / 16:
            outputs.append(outputs[int(self.rng.integers(len(outputs)))])
        if self.rng.random() < 1 / 32:
            # Apart from what else may be wrong, which it would hide.
            outputs = [next(iter(builder.operands)), results[-1]]
        return builder.posed(outputs)

    def _outputs(self, nodes: Sequence[GraphNode], read: Collection[int]) -> list[int]:
        """Return some results of operators, at least the last one."""
        results = [at for node in nodes for at in node.outputs]
        return [
            at for at in results if self.rng.random() < (0.35 if at in read else 0.85)
        ] or results[-1:]

    def view_chain(self, variant: Variant) -> DrawnGraph | None:
        """Return a view of a view that an operator reads, and one that reads a view later.

        None where no view takes what the operator does.
        """
        operands = self.graphs.operands(variant.node)
        dtype = operands[0].dtype if operands else ""
        made = self._taking(dtype)
        views = [cell for cell in made if cell[0] in VIEWS]
        if not views:
            return None
        late = views if self.rng.random() < 1 / 2 else made
        chain_ = [self._any_of(made), self._any_of(views), self._any_of(views), variant]
        builder, last, tensors = GraphBuilder(self.rng, self.graphs), None, list[int]()
        used = (*chain_, self._any_of(late))
        for reader in used:
            reads = {0: last} if last is not None else {}
            if len(tensors) == len(chain_):  # the last one reads an earlier view
                reads = {0: tensors[1 if self.rng.random() < _FIRST_VIEW else 0]}
            elif reader.twice and reads:
                reads[1] = reads[0]
            written = builder.add(reader.node, reads)
            if written is None:
                return None
            last = written[0]
            tensors.append(last)
        return self._with_reader(builder, used, tensors, made)

    def _with_reader(
        self,
        builder: GraphBuilder,
        used: tuple[Variant, ...],
        tensors: Sequence[int],
        made: Sequence[Cell],
    ) -> DrawnGraph:
        """Return a graph, with what reads a result that may be written over its operand.

        It is no output: that is not written over its operand.
        """
        *_, written, last = tensors
        after = self._any_of(made)
        read = builder.add(after.node, {0: written}) if self.rng.random() < 1 / 2 else None
        if read is None:
            return used, builder.posed((last,))
        return (*used, after), builder.posed((read[0], last))

    def _any_of(self, cells: Sequence[Cell]) -> Variant:
        cell = cells[int(self.rng.integers(len(cells)))]
        return OperatorVariants(self.rng, self.graphs).other_view(self.variants[cell][0])

    def _taking(self, dtype: str) -> list[Cell]:
        return [cell for cell in self.cells if DTYPES[cell[1]] == dtype]
