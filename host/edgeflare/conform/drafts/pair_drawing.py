"""Models of a few operators, each of which reads the result of the one before."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from edgeflare.conform.drafts.cell_pairs import CellPair, example_pair
from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.drafts.coverage import Coverage, draft_pairs
from edgeflare.conform.drafts.draft import FRESH, Draft, DraftNode, DraftOutcome, NodeGraphs
from edgeflare.conform.drafts.feeding import node_fed
from edgeflare.conform.drafts.uniform_drawing import drawn_node

PAIR_NODES = 4
"""Operators of a model. What a device needs time for is operators: a model of two has one pair, one
of four has three. In longer ones values are clamped and rounded too often to show much."""

_MOST_TRIES = 3
"""Draws of two nodes before the known example of their cells is taken."""

_OTHER_OPERANDS = 0.25
"""How often another operand than the first is fed, of operators that have several."""


class PairDrawing:
    """Draws the ordered pairs of cells that count, new ones first, in a random order.

    A model begins with a pair and goes on with operators that make new pairs with the last one.
    When there are no new pairs, all that the device takes are drawn again.
    """

    def __init__(
        self, coverage: Coverage, rng: np.random.Generator, most_nodes: int = PAIR_NODES
    ) -> None:
        """Begin.

        Args:
            coverage: says which pairs count and what is new; is told what is drawn.
            rng: every draw.
            most_nodes: operators of a model, at least 2.

        """
        self._coverage, self._rng, self._most_nodes = coverage, rng, most_nodes
        self._graphs = NodeGraphs()
        self._waiting: deque[CellPair] = deque()
        self._readers: dict[Cell, list[Cell]] = defaultdict(list)

    def ask(self, count: int) -> list[Draft]:
        """Return the next models."""
        drafts: list[Draft] = []
        while len(drafts) < count and (pair := self._next()) is not None:
            draft = drawn_pair(pair, self._coverage, self._graphs, self._rng)
            drafts.append(self._lengthened(draft))
            self._coverage.expect(drafts[-1])
        return drafts

    def tell(self, drafts: Sequence[Draft], outcomes: Sequence[DraftOutcome]) -> None:
        """Take what became of models that were asked for."""
        for draft, outcome in zip(drafts, outcomes, strict=True):
            self._coverage.settle(draft, outcome)

    def _next(self) -> CellPair | None:
        while self._waiting:
            pair = self._waiting.popleft()
            if self._coverage.is_new_pair(pair):
                return pair
        taken = [one for one in self._coverage.pairs if not self._coverage.is_refused_pair(one)]
        new = [one for one in taken if self._coverage.is_new_pair(one)]
        if not taken:
            return None
        if not new:
            return taken[int(self._rng.integers(len(taken)))]
        self._waiting.extend(new[at] for at in self._rng.permutation(len(new)))
        self._readers.clear()
        for first, second in self._waiting:
            self._readers[first].append(second)
        return self._waiting.popleft()

    def _lengthened(self, draft: Draft) -> Draft:
        """Return a draft with further operators behind its last one, as long as they are new."""
        while len(draft.nodes) < self._most_nodes:
            last = draft.nodes[-1]
            present = set(draft_pairs(draft))
            new = [
                cell
                for cell in self._readers[last.cell]
                if self._coverage.is_new_pair((last.cell, cell))
            ]
            self._readers[last.cell] = new
            wanted = [cell for cell in new if (last.cell, cell) not in present]
            longer = self._with_reader(draft, wanted[:_MOST_TRIES])
            if longer is None:
                return draft
            draft = longer
        return draft

    def _with_reader(self, draft: Draft, cells: Sequence[Cell]) -> Draft | None:
        for cell in cells:
            node = drawn_node(cell, self._coverage, self._graphs, self._rng)
            longer = None if node is None else with_reader(draft, node, self._graphs, self._rng)
            if longer is not None:
                return longer
        return None


def drawn_pair(
    pair: CellPair, coverage: Coverage, graphs: NodeGraphs, rng: np.random.Generator
) -> Draft:
    """Return two nodes of a pair of cells that is allowed."""
    for _ in range(_MOST_TRIES):
        first, second = (drawn_node(one, coverage, graphs, rng) for one in pair)
        if first is not None and second is not None:
            draft = with_reader(Draft((first,)), second, graphs, rng)
            if draft is not None:
                return draft
    example = example_pair(*pair)
    if example is None:
        raise ValueError(f"{pair[0]} cannot feed {pair[1]}")
    return Draft(example)


def with_reader(
    draft: Draft, node: DraftNode, graphs: NodeGraphs, rng: np.random.Generator
) -> Draft | None:
    """Return a draft with another node that reads its last one, or None where it cannot."""
    last = len(draft.nodes) - 1
    places = [0]
    if len(node.sources) > 1 and rng.random() < _OTHER_OPERANDS:
        places.insert(0, int(rng.integers(1, len(node.sources))))
    for at in places:
        fed = node_fed(node, {at: graphs.result(draft.nodes[last])}, graphs)
        if fed is not None:
            sources = tuple(last if one == at else FRESH for one in range(len(fed.sources)))
            return Draft((*draft.nodes, replace(fed, sources=sources)))
    return None
