"""Trees of operators that hold several pairs at once, until each pair was met in each use.

How the first result of a pair is used decides what runtimes do with it: whether its memory may be
reused, and whether the two may be fused. Operators of a tree are run alone once for all pairs that
they are in, so that a pair in one use takes 2.6 runs of an operator, where it takes 4 by itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

import numpy as np

from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.drafts.draft import NodeGraphs
from edgeflare.conform.graphs.commonness import covering_order, pair_lateness
from edgeflare.conform.graphs.graph_builder import GraphBuilder
from edgeflare.conform.graphs.operator_variants import DrawnGraph, OperatorVariants, Variant
from edgeflare.conform.operator_graph import OperatorGraph

ResultUse = Literal["answered", "hidden", "shared"]
"""How a result is used: read by one operator and an output; read by one alone; read by several."""

_UseOfOne = tuple[Literal["maker", "taker"], ResultUse, Cell]
"""The use of a result by who makes or takes it, whatever the other operator is."""

_USES: Final[tuple[ResultUse, ...]] = ("answered", "hidden", "shared")

_MOST_NODES: Final = 8
"""Operators of a graph, about: a small tree has another one beside it. With more of them, more is
tried again where one is wrong."""

_DEPTH: Final = 4
"""Operators from what a tree is given to its last results: values become all alike in long chains,
where nothing shows."""

_TRIED: Final = 6
"""Operators that are tried to read a result until one can."""

_TURNS: Final = 3
"""How often a pair is drawn whose graph failed, or had an operator that gave no answer alone: the
pair itself may be sound."""

_BLAMED: Final = 4
"""Failing trees with a use of an operator, in three of four of those with it, after which it is
drawn no more in that use: what is wrong there hides all else."""


class PairUse(NamedTuple):
    """A pair of which the first result has a use."""

    maker: Cell
    taker: Cell
    use: ResultUse


class _End(NamedTuple):
    """Results of an operator that nothing reads yet, and how many operators they are behind."""

    written: tuple[int, ...]
    depth: int


@dataclass(slots=True)
class _GrownTrees:
    """Trees beside each other in one graph, while they grow.

    Attributes:
        builder: the graph.
        variants: the operators of the graph, in the order in which they were added.
        makers: the operator that writes each tensor, and its type.
        read: tensors that an operator reads.
        answered: tensors that are answered, although they are read.

    """

    builder: GraphBuilder
    variants: list[Variant] = field(default_factory=list)
    makers: dict[int, Cell] = field(default_factory=dict)
    read: set[int] = field(default_factory=set)
    answered: set[int] = field(default_factory=set)

    def note(self, variant: Variant, written: Sequence[int], read: Iterable[int]) -> None:
        """Note an operator that was added."""
        self.variants.append(variant)
        self.makers |= dict.fromkeys(written, variant.node.cell)
        self.read.update(read)

    @property
    def cells(self) -> list[Cell]:
        """The operators and their types, in their order."""
        return [variant.node.cell for variant in self.variants]

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another pair."""
        return len(self.variants) > _MOST_NODES - 2

    def copy(self) -> _GrownTrees:
        """Return the trees as they are, which grow by themselves."""
        return _GrownTrees(
            self.builder.copy(),
            list(self.variants),
            dict(self.makers),
            set(self.read),
            set(self.answered),
        )

    def drawn(self) -> DrawnGraph:
        """Return the graph, which answers what nothing reads, and what is answered."""
        outputs = [at for at in self.makers if at in self.answered or at not in self.read]
        return tuple(self.variants), self.builder.posed(outputs)


def pair_uses(cells: Sequence[Cell], graph: OperatorGraph) -> list[PairUse]:
    """Return the pairs of a graph, with the uses of their first results.

    Args:
        cells: its operators and their types, in their order.
        graph: the graph.

    """
    makers = {
        at: cell for cell, node in zip(cells, graph.nodes, strict=True) for at in node.outputs
    }
    readers: dict[int, list[Cell]] = defaultdict(list)
    for cell, node in zip(cells, graph.nodes, strict=True):
        for at in sorted(set(node.inputs) & set(makers)):
            readers[at].append(cell)
    return [
        PairUse(makers[at], taker, _use(at in graph.outputs, len(several)))
        for at, several in readers.items()
        for taker in several
    ]


def _use(is_answered: bool, readers: int) -> ResultUse:
    return "shared" if readers > 1 else "answered" if is_answered else "hidden"


class PairTrees:
    """Draws trees; see the module. It is told of all graphs, whose pairs are met, too.

    Attributes:
        pairs: the pairs that were drawn.

    """

    def __init__(
        self,
        variants: Mapping[Cell, Sequence[Variant]],
        ways: OperatorVariants,
        is_left: Callable[[Cell, Cell], bool],
    ) -> None:
        """Draw nothing yet.

        Args:
            variants: the ways in which each operator is tried.
            ways: draws settings.
            is_left: whether a pair is worth being drawn.

        """
        self.pairs: set[tuple[Cell, Cell]] = set()
        self._variants, self._ways, self._is_left = variants, ways, is_left
        self._rng: np.random.Generator = ways.rng
        self._met: set[PairUse] = set()
        self._order: deque[PairUse] = deque()
        self._takers: dict[tuple[Cell, ResultUse], deque[Cell]] = defaultdict(deque)
        self._turns: Counter[PairUse] = Counter()
        self._tried: Counter[_UseOfOne] = Counter()
        self._failing: Counter[_UseOfOne] = Counter()

    def trees(self) -> Iterator[DrawnGraph]:
        """Yield trees until no pair is left."""
        pairs = list(fitting_pairs(self._variants, self._ways.graphs))
        for at in covering_order(pairs, list(map(pair_lateness, pairs)), self._rng):
            self._order.extend(PairUse(*pairs[at], use) for use in self._three())
        for pair in self._order:
            self._takers[pair.maker, pair.use].append(pair.taker)
        grown = self._nothing_grown()
        while self._order:
            pair = self._order.popleft()
            grown = (self._grown(grown, pair) if self._is_wanted(pair) else None) or grown
            self._met.add(pair)
            if grown.variants and (grown.is_full or not self._order):
                yield grown.drawn()
                grown = self._nothing_grown()

    def tell(
        self, cells: Sequence[Cell], graph: OperatorGraph, *, answered: bool, fails: bool
    ) -> None:
        """Take what became of a graph.

        Args:
            cells: its operators and their types, in their order.
            graph: the graph.
            answered: whether all of its operators are right alone.
            fails: whether they are wrong together.

        """
        pairs = pair_uses(cells, graph)
        self.pairs.update((pair.maker, pair.taker) for pair in pairs)
        if answered and not (fails and len(pairs) > 1):
            self._met.update(pairs)
        else:
            self._turns.update(set(pairs))
            again = [pair for pair in dict.fromkeys(pairs) if self._turns[pair] < _TURNS]
            self._met.difference_update(again)
            self._order.extend(again)
        for part in {part for pair in pairs if answered for part in _parts(pair)}:
            self._tried[part] += 1
            self._failing[part] += fails

    def _three(self) -> list[ResultUse]:
        return [_USES[at] for at in self._rng.permutation(len(_USES))]

    def _is_wanted(self, pair: PairUse) -> bool:
        if pair in self._met or not self._is_left(pair.maker, pair.taker):
            return False
        return not any(
            self._failing[part] >= _BLAMED and 4 * self._failing[part] >= 3 * self._tried[part]
            for part in _parts(pair)
        )

    def _nothing_grown(self) -> _GrownTrees:
        return _GrownTrees(GraphBuilder(self._rng, self._ways.graphs))

    def _grown(self, before: _GrownTrees, first: PairUse) -> _GrownTrees | None:
        """Return trees and one more that begins with a pair; None where the pair does not fit."""
        for _ in range(_TRIED):
            trees = before.copy()
            root = self._any_of(first.maker)
            made = trees.builder.add_first(root.node, twice=root.twice)
            if made is None:
                continue
            trees.note(root, made, ())
            ends = deque[_End]()
            if not self._extend(trees, ends, _End(made, 1), first.use, [first.taker]):
                continue
            while ends and len(trees.variants) < _MOST_NODES:
                end = ends.popleft()
                any(self._extend(trees, ends, end, use) for use in self._uses_left(trees, end))
            self._met.update(pair_uses(trees.cells, trees.drawn()[1].graph))
            return trees
        return None

    def _uses_left(self, trees: _GrownTrees, end: _End) -> list[ResultUse]:
        """Return the uses of a result, those first in which most operators are left to read it."""
        maker = trees.makers[end.written[0]]
        return sorted(self._three(), key=lambda use: -len(self._takers[maker, use]))

    def _extend(
        self,
        trees: _GrownTrees,
        ends: deque[_End],
        end: _End,
        use: ResultUse,
        takers: Sequence[Cell] = (),
    ) -> bool:
        """Let operators read an end, as many as its use has readers; return whether any does.

        Args:
            trees: the trees.
            ends: what nothing reads yet, to which what they write is added.
            end: what they read.
            use: its use.
            takers: the operator that reads it first; empty for any.

        """
        tensor = end.written[0]
        for _ in range(2 if use == "shared" else 1):
            for cell in takers or self._next_takers(trees.makers[tensor], use):
                variant = self._any_of(cell)
                reads = _reads(variant, end.written)
                written = self._ways.reading(trees.builder, variant, reads)
                if written is not None:
                    trees.note(variant, written, reads.values())
                    if end.depth + 1 < _DEPTH:
                        ends.append(_End(written, end.depth + 1))
                    break
            takers = ()
        if use == "answered" and tensor in trees.read:
            trees.answered.add(tensor)
        return tensor in trees.read

    def _next_takers(self, maker: Cell, use: ResultUse) -> list[Cell]:
        """Return the next operators that are to read a result, and put them behind the others."""
        takers, found = self._takers[maker, use], list[Cell]()
        for _ in range(len(takers)):
            cell = takers.popleft()
            if PairUse(maker, cell, use) in self._met:
                continue
            takers.append(cell)
            if self._is_wanted(PairUse(maker, cell, use)):
                found.append(cell)
            if len(found) == _TRIED:
                break
        return found

    def _any_of(self, cell: Cell) -> Variant:
        several = self._variants[cell]
        return several[int(self._rng.integers(len(several)))]


def _parts(pair: PairUse) -> tuple[_UseOfOne, ...]:
    """Return what of a pair may be wrong whatever the other operator is."""
    return ("maker", pair.use, pair.maker), ("taker", pair.use, pair.taker)


def _reads(variant: Variant, made: Sequence[int]) -> dict[int, int]:
    """Return what an operator reads: both results of one before it, or one, or one twice."""
    return {0: made[0], 1: made[min(1, len(made) - 1)]} if variant.twice else {0: made[0]}


def fitting_pairs(
    variants: Mapping[Cell, Sequence[Variant]], graphs: NodeGraphs
) -> Iterator[tuple[Cell, Cell]]:
    """Yield the pairs of operators of which the second may take what the first writes."""
    readers: dict[str, dict[Cell, None]] = defaultdict(dict)
    for cell, several in variants.items():
        for variant in several:
            if operands := graphs.operands(variant.node):
                readers[operands[0].dtype][cell] = None
    for cell, several in variants.items():
        written = {graphs.result(variant.node).dtype for variant in several}
        for dtype in sorted(written):
            yield from ((cell, taker) for taker in readers[dtype])
