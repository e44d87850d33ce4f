"""Graphs drawn in stages: single operators, all pairs, triples of what was found, and any."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Final

import numpy as np

from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.drafts.draft import NodeGraphs
from edgeflare.conform.execution.kernel_arm import PosedModel
from edgeflare.conform.graphs.commonness import FIRST_TYPES, covering_order, lateness, pair_lateness
from edgeflare.conform.graphs.graph_builder import GraphBuilder
from edgeflare.conform.graphs.graph_verdict import JudgedGraph
from edgeflare.conform.graphs.kept_states import KEEPING
from edgeflare.conform.graphs.operator_variants import DrawnGraph, OperatorVariants, Variant
from edgeflare.conform.graphs.pair_trees import PairTrees
from edgeflare.conform.graphs.random_graphs import RandomGraphs
from edgeflare.conform.graphs.residual_graphs import ResidualGraphs
from edgeflare.conform.verdict.kernel_judgement import LOST

_REFUSALS: Final = 3
"""Graphs with a cell that gave no answer alone, and never one, after which it is drawn no more."""

_SHOWN: Final = 12
"""Failing graphs of the same operators, drawn after which pairs of them are drawn no more."""

_SHOWN_DEAR: Final = 2
"""Likewise, of those that do not answer: each costs a process, and more to find it among others."""

_SHOWN_TRIPLES: Final = 4
"""Failing triples of a pair, after which no more of it are drawn: they fail by the pair."""

_SCALES: Final = 12
"""Scales of the result of a quantized operator that reads one tensor twice, all powers of 2: where
a kernel rounds otherwise then, values half-way between two steps show it, and hardly any others."""

_VIEW_CHAINS: Final = 4
"""Graphs with a view of a view for each way in which an operator is tried."""

_TREES_EACH: Final = 4
"""Trees of pairs for each drawn graph: of a pair that is wrong there is one tree, and chains of
views are found before."""

_STATES: Final = 2
"""Graphs of an operator with a state, besides one of plain settings."""

_TWO_GRAPHS: Final = 2
"""Draws of two graphs that share the constants of an operator, for each way of trying it."""

_MOST_FAILURES: Final = 200
"""Draws in a row that make no graph, after which there is none left to draw."""


class GraphDrawing:
    """Draws graphs, stage after stage, of operators that the device takes.

    What is drawn depends on the generator and on what it was told, so that a run is resumed by
    telling it the same again.
    """

    def __init__(self, cells: Sequence[Cell], rng: np.random.Generator) -> None:
        """Draw the ways in which each operator is tried.

        Args:
            cells: operators and types.
            rng: every draw.

        """
        self._cells, self._rng, self._graphs = tuple(cells), rng, NodeGraphs()
        self._ways = OperatorVariants(rng, self._graphs)
        self._unanswered: Counter[Cell] = Counter()
        self._answered: set[Cell] = set()
        self._shown: Counter[tuple[str, ...]] = Counter()
        self._failing: dict[tuple[Cell, Cell], tuple[Variant, Variant]] = {}
        self._left_out: list[Variant] = []
        self._triples_shown: Counter[tuple[Cell, Cell]] = Counter()
        self._variants = {cell: tuple(self._ways.of(cell)) for cell in self._cells}
        self._trees = PairTrees(self._variants, self._ways, self._is_left)
        self._pending: list[DrawnGraph] = []
        self._stages = chain(
            self._answered_inputs(),
            self._singles(),
            self._residuals(),
            self._states(),
            self._first_pairs(),
            self._triples(),
            self._both_results(),
            self._views(),
            self._rescaled(),
            self._two_graphs(),
            self._rest(),
        )

    @property
    def pairs(self) -> int:
        """Of how many pairs of operators and types graphs were told."""
        return len(self._trees.pairs)

    @property
    def taken(self) -> tuple[int, int]:
        """How many operators and types gave an answer alone, and of how many."""
        return len(self._answered), len(self._cells)

    def ask(self, count: int) -> list[PosedModel]:
        """Return the next graphs, fewer than asked for only where there are no more."""
        self._pending = list(islice(self._stages, count))
        return [model for _, model in self._pending]

    def tell(self, judged: Sequence[JudgedGraph]) -> None:
        """Take what became of the graphs that were asked for last, in their order."""
        for (variants, model), graph in zip(self._pending, judged, strict=True):
            cells = _cells(variants)
            for cell, taken in zip(cells, graph.taken, strict=True):
                if taken:
                    self._answered.add(cell)
                elif taken is not None:
                    self._unanswered[cell] += 1
            said = graph.judgement
            if said is not None and said.verdict == "refused":
                self._leave_out_twice(variants)
            if said is not None and graph.fails:
                dear = said.verdict in LOST
                operators = tuple(operator for operator, _ in cells)
                self._shown[operators] += _SHOWN // _SHOWN_DEAR if dear else 1
                if len(variants) == 2 and not dear:
                    self._failing.setdefault((cells[0], cells[1]), (variants[0], variants[1]))
                for at in range(len(variants) - 1 if len(variants) == 3 else 0):
                    self._triples_shown[cells[at], cells[at + 1]] += 1
            answered = said is not None
            self._trees.tell(cells, model.graph, answered=answered, fails=graph.fails)

    def _leave_out_twice(self, variants: Sequence[Variant]) -> None:
        """Let an operator read one tensor twice no more where that is refused.

        It may still read two results of one operator.
        """
        if len(variants) == 1 and variants[0].twice:
            cell = variants[0].node.cell
            kept = (variant for variant in self._variants[cell] if variant is not variants[0])
            self._variants[cell] = tuple(kept)
            self._left_out.append(variants[0])

    def _is_kept(self, pair: tuple[Variant, Variant]) -> bool:
        first, second = (not any(variant is other for other in self._left_out) for variant in pair)
        return first and (second or self._ways.has_several(pair[0].node))

    def _is_taken(self, cell: Cell) -> bool:
        return cell in self._answered or self._unanswered[cell] < _REFUSALS

    def _answered_inputs(self) -> Iterator[DrawnGraph]:
        """Yield an operator of each type whose operand is answered, too: it hides all else."""
        common = [cell for cell in self._cells if lateness(cell) == 0] or self._cells
        each = {cell[1]: cell for cell in self._shuffled(common)}
        for cell in each.values():
            for variant in self._variants[cell][:1]:
                builder = GraphBuilder(self._rng, self._graphs)
                written = builder.add_first(variant.node, twice=variant.twice)
                if written is not None and builder.operands:
                    yield (variant,), builder.posed((next(iter(builder.operands)), *written))

    def _singles(self) -> Iterator[DrawnGraph]:
        """Yield operators alone, of which one tensor is two operands, or a result is not read."""
        for cell in self._shuffled(self._cells):
            for variant in self._variants[cell]:
                yield from self._single(variant)

    def _residuals(self) -> Iterator[DrawnGraph]:
        """Yield what common operators make added to what they read, joined, and in variables."""
        residual = ResidualGraphs(self._variants, self._ways)
        for cell in self._shuffled([cell for cell in self._cells if lateness(cell) == 0]):
            yield from residual.sums(cell)
            yield from residual.concatenations(cell)
            yield from residual.variables(cell)

    def _states(self) -> Iterator[DrawnGraph]:
        """Yield operators that keep a state from one invocation to the next, a few ways of each."""
        for cell in self._shuffled([cell for cell in self._cells if cell[0] in KEEPING]):
            for variant in self._variants[cell][:1]:
                others = [self._ways.other_settings(variant) for _ in range(_STATES)]
                for other in (variant, *others):
                    builder = GraphBuilder(self._rng, self._graphs)
                    written = builder.add_first(other.node)
                    if written is not None:
                        yield (other,), builder.posed(written)

    def _two_graphs(self) -> Iterator[DrawnGraph]:
        """Yield two graphs that share the constants of an operator, for each that has some."""
        for cell in self._shuffled(self._cells):
            for variant in self._variants[cell]:
                if not variant.twice and self._has_constants(variant):
                    drawn = (self._random().draw_two(variant) for _ in range(2 * _TWO_GRAPHS))
                    found = (graph for graph in drawn if graph is not None)
                    yield from islice(found, _TWO_GRAPHS if self._is_taken(cell) else 0)

    def _has_constants(self, variant: Variant) -> bool:
        graph = self._graphs.graph(variant.node)
        constants = [value for value in graph.values if value.values is not None]
        return bool(graph.inputs and constants) and not any(value.variable for value in constants)

    def _rescaled(self) -> Iterator[DrawnGraph]:
        """Yield quantized operators that read a tensor twice, with other scales of the result."""
        for cell in self._shuffled(self._cells):
            for variant in self._variants[cell]:
                if variant.twice and "output_scale" in variant.node.configuration:
                    for _ in range(_SCALES if self._is_taken(cell) else 0):
                        yield from self._single(self._ways.rescaled(variant))

    def _single(self, variant: Variant) -> Iterator[DrawnGraph]:
        builder = GraphBuilder(self._rng, self._graphs)
        written = builder.add_first(variant.node, twice=variant.twice)
        if written is not None and variant.twice:
            yield (variant,), builder.posed(written)
        if written is not None and len(written) > 1:
            yield (variant,), builder.posed(written[-1:])

    def _first_pairs(self) -> Iterator[DrawnGraph]:
        """Yield the pairs of common operators, in the types that most models have."""
        every = [variant for variant in self._every() if lateness(variant.node.cell) == 0]
        for pair in self._pairs(every, every):
            yield from self._of_pair(pair)

    def _both_results(self) -> Iterator[DrawnGraph]:
        """Yield operators that read two results of one, in all types."""
        every = self._every()
        several = [variant for variant in every if self._ways.has_several(variant.node)]
        takers = [each for each in (*every, *self._left_out) if each.twice]
        for first, second in self._pairs(several, takers):
            builder = GraphBuilder(self._rng, self._graphs)
            made = builder.add_first(first.node)
            reads = dict(enumerate(made[:2])) if made is not None else {}
            written = builder.add(second.node, reads) if reads else None
            if made is not None and written is not None:
                yield (first, second), builder.posed((*made, *written))
                yield (first, second), builder.posed((*made[2:], *written))

    def _rest(self) -> Iterator[DrawnGraph]:
        """Yield trees of all pairs and drawn graphs in turn, and these without an end."""
        trees = self._trees.trees()
        for drawn in self._any():
            yield drawn
            yield from islice(trees, _TREES_EACH)
        yield from trees

    def _every(self) -> list[Variant]:
        return [variant for cell in self._cells for variant in self._variants[cell]]

    def _pairs(
        self, makers: Sequence[Variant], takers: Sequence[Variant]
    ) -> Iterator[tuple[Variant, Variant]]:
        """Yield every pair of which the second may take what the first writes, in random order."""
        readers: dict[str, list[Variant]] = defaultdict(list)
        for taker in takers:
            if operands := self._graphs.operands(taker.node):
                readers[operands[0].dtype].append(taker)
        both = [
            (first, second)
            for first in makers
            for second in readers[self._graphs.result(first.node).dtype]
        ]
        # Those first that read a tensor twice.
        late = [(pair_lateness(_cells(pair)), not pair[1].twice) for pair in both]
        cells = [(first.node.cell, second.node.cell) for first, second in both]
        for at in covering_order(cells, late, self._rng):
            if self._is_left(*cells[at]) and self._is_kept(both[at]):
                yield both[at]

    def _is_left(self, *cells: Cell) -> bool:
        """Return whether operators that read each other are worth being drawn."""
        shown = self._shown[tuple(operator for operator, _ in cells)]
        return shown < _SHOWN and all(map(self._is_taken, cells))

    def _of_pair(self, pair: tuple[Variant, Variant]) -> Iterator[DrawnGraph]:
        """Yield the graphs of a pair, both results answered, or the last one alone."""
        builder = GraphBuilder(self._rng, self._graphs)
        made = builder.add_first(pair[0].node, twice=pair[0].twice)
        if made is None:
            return
        reads = [{0: made[0], 1: made[0]} if pair[1].twice else {0: made[0]}]
        if pair[1].twice and len(made) > 1:
            reads.append({0: made[0], 1: made[1]})
        for tensors in reads:
            grown = builder.copy()
            written = self._ways.reading(grown, pair[1], tensors)
            if written is None:
                continue
            yield pair, grown.posed((*made, *written))
            if len(made) > 1:
                yield pair, grown.posed(written)

    def _triples(self) -> Iterator[DrawnGraph]:
        """Yield the pairs that fail with a third operator behind them, and before them, in turn."""
        turns = deque(self._triples_of(*pair) for pair in list(self._failing.values()))
        while turns:
            triples = turns.popleft()
            if (drawn := next(triples, None)) is not None:
                yield drawn
                turns.append(triples)

    def _triples_of(self, first: Variant, second: Variant) -> Iterator[DrawnGraph]:
        pair = first.node.cell, second.node.cell
        for cell in self._shuffled(self._cells):
            for third in self._variants[cell][:1] if self._is_taken(cell) else ():
                for three in ((first, second, third), (third, first, second)):
                    if self._triples_shown[pair] >= _SHOWN_TRIPLES:
                        return
                    if self._shown[tuple(v.node.operator for v in three)] >= 1:
                        continue
                    if (model := self._chain(three)) is not None:
                        yield three, model

    def _views(self) -> Iterator[DrawnGraph]:
        """Yield views of views, of which an operator reads the last, and another the first later.

        Views share memory, in which an operator may write its result over its operand.
        """
        for cell in self._shuffled(self._cells):
            for variant in self._variants[cell]:
                chains = (self._random().view_chain(variant) for _ in range(3 * _VIEW_CHAINS))
                drawn = (graph for graph in chains if graph is not None)
                yield from islice(drawn, _VIEW_CHAINS if self._is_taken(cell) else 0)

    def _chain(self, variants: Sequence[Variant]) -> PosedModel | None:
        builder = GraphBuilder(self._rng, self._graphs)
        made = builder.add_first(variants[0].node, twice=variants[0].twice)
        outputs: list[int] = []
        for variant in variants[1:]:
            if made is None:
                return None
            outputs += made
            made = builder.add(
                variant.node, {0: made[0], 1: made[0]} if variant.twice else {0: made[0]}
            )
        return None if made is None else builder.posed((*outputs, *made))

    def _any(self) -> Iterator[DrawnGraph]:
        """Yield graphs of any operators that the device takes, without an end."""
        types = sorted({type_ for _, type_ in self._cells})
        failures = 0
        while failures < _MOST_FAILURES:
            first = [type_ for type_ in types if type_ in FIRST_TYPES]
            among = first if first and self._rng.random() < 0.7 else types
            drawn = self._random().draw(among[int(self._rng.integers(len(among)))])
            failures = failures + 1 if drawn is None else 0
            if drawn is not None:
                yield drawn

    def _random(self) -> RandomGraphs:
        cells = [cell for cell in self._cells if self._variants[cell] and self._is_taken(cell)]
        return RandomGraphs(self._rng, self._graphs, cells, self._variants)

    def _shuffled(self, cells: Sequence[Cell]) -> list[Cell]:
        return [cells[at] for at in self._rng.permutation(len(cells))]


def _cells(variants: Sequence[Variant]) -> list[Cell]:
    return [variant.node.cell for variant in variants]
