"""Models drawn evenly: of one operator each over the buckets of all cells, or of pairs of cells.

In a pair, and in what follows it, each operator reads the result of the one before.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from edgeflare.conform.drafts.cell_pairs import CellPair, example_pair
from edgeflare.conform.drafts.cells import (
    Cell,
    cell_parameters,
    drawn_configuration,
    drawn_seed,
    with_setting,
)
from edgeflare.conform.drafts.coverage import Bucket, Coverage, draft_pairs
from edgeflare.conform.drafts.draft import FRESH, Draft, DraftNode, DraftOutcome, NodeGraphs
from edgeflare.conform.drafts.feeding import node_fed
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.parameter import Configuration, Setting

_CHOICES = 4
"""Valid configurations of which the one is taken that covers most."""

_BUCKETS = 20
"""Buckets of a cell for each draw of it in a round of all cells: half of the cells have no more.
CONV_2D has five times as many in int8, and as many more ways to be wrong."""

_MOST_TRIES = 8
"""Draws of a configuration that has some bucket; it may be that none can have it."""

_MOST_SETTINGS = 64
"""Draws of a single parameter until its setting is in a bucket, which may be a rare one."""


class UniformDrawing:
    """Draws one cell after the other, in an order that changes with each round of all cells.

    After each round, cells with many buckets come once more, or several times. Of a few
    configurations the one is taken that covers most, and of these the one with most new
    combinations of two buckets.
    A cell that the device has only ever refused is drawn no more.
    """

    def __init__(self, coverage: Coverage, rng: np.random.Generator) -> None:
        """Begin.

        Args:
            coverage: says which cells count and what is new; is told what is drawn.
            rng: every draw.

        """
        self._coverage, self._rng = coverage, rng
        self._graphs = NodeGraphs()
        self._waiting: list[Cell] = []

    def ask(self, count: int) -> list[Draft]:
        """Return the next models."""
        drafts: list[Draft] = []
        failed = 0
        while len(drafts) < count and failed <= len(self._coverage.cells):
            node = self._next()
            failed += node is None
            if node is not None:
                drafts.append(Draft((node,)))
                self._coverage.expect(drafts[-1])
        return drafts

    def tell(self, drafts: Sequence[Draft], outcomes: Sequence[DraftOutcome]) -> None:
        """Take what became of models that were asked for."""
        for draft, outcome in zip(drafts, outcomes, strict=True):
            self._coverage.settle(draft, outcome)

    def _next(self) -> DraftNode | None:
        if not self._waiting:
            self._waiting = self._round()[::-1]
        if not self._waiting:
            return None
        return drawn_node(self._waiting.pop(), self._coverage, self._graphs, self._rng)

    def _round(self) -> list[Cell]:
        """Return the cells of a round, those that come once more after all."""
        cells = [cell for cell in self._coverage.cells if not self._coverage.is_refused(cell)]
        found: list[Cell] = []
        times = 0
        while cells:
            found += [cells[at] for at in self._rng.permutation(len(cells))]
            times += 1
            cells = [cell for cell in cells if _times(cell) > times]
        return found


def _times(cell: Cell) -> int:
    """Return how often a cell is drawn in each round."""
    buckets = sum(len(parameter.buckets) for parameter in cell_parameters(cell))
    return max(1, round(buckets / _BUCKETS))


def drawn_node(
    cell: Cell, coverage: Coverage, graphs: NodeGraphs, rng: np.random.Generator
) -> DraftNode | None:
    """Return a node of a cell that nothing feeds, None where no configuration is valid."""
    first = drawn_configuration(cell, rng)
    if first is None:
        return None
    wanted = coverage.new_buckets(cell)
    others = [_configuration(cell, wanted, rng) for _ in range(_CHOICES - 1)]
    seed = drawn_seed(rng)
    nodes = [
        DraftNode(*cell, settings, seed, ())
        for settings in (first, *others)
        if settings is not None
    ]
    best = max(
        nodes, key=lambda node: (coverage.diverse(Draft((node,))), coverage.new_combinations(node))
    )
    return replace(best, sources=(FRESH,) * len(graphs.operands(best)))


def _configuration(
    cell: Cell, wanted: Sequence[Bucket], rng: np.random.Generator
) -> Configuration | None:
    """Return a configuration that has one of the buckets that are wanted, if any are."""
    if not wanted:
        return drawn_configuration(cell, rng)
    return configuration_with(wanted[int(rng.integers(len(wanted)))], rng)


def configuration_with(bucket: Bucket, rng: np.random.Generator) -> Configuration | None:
    """Return a valid configuration that has a bucket, or None where none is drawn."""
    operator, type_, name, _ = bucket
    specification = known_operators()[operator]
    for _ in range(_MOST_TRIES):
        configuration = specification.draw(type_, rng)
        setting = setting_in(bucket, configuration[name], rng)
        if setting is None:
            return None
        changed = with_setting((operator, type_), configuration, name, setting)
        if changed is not None:
            return changed
    return None


def setting_in(bucket: Bucket, setting: Setting, rng: np.random.Generator) -> Setting | None:
    """Return a setting that is in a bucket, this one if it is, or None where none is drawn."""
    operator, type_, name, wanted = bucket
    parameter = next(
        cell_parameter
        for cell_parameter in cell_parameters((operator, type_))
        if cell_parameter.name == name
    )
    for _ in range(_MOST_SETTINGS):
        if parameter.bucket(setting) == wanted:
            return setting
        setting = parameter.draw(rng)
    return None


PAIR_NODES = 4
"""Operators of a model. What a device needs time for is operators: a model of two has one pair, one
of four has three. In longer ones values are clamped and rounded too often to show much."""

_PAIR_TRIES = 3
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
        taken = [
            cells for cells in self._coverage.pairs if not self._coverage.is_refused_pair(cells)
        ]
        new = [cells for cells in taken if self._coverage.is_new_pair(cells)]
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
            longer = self._with_reader(draft, wanted[:_PAIR_TRIES])
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
    for _ in range(_PAIR_TRIES):
        first, second = (drawn_node(cell, coverage, graphs, rng) for cell in pair)
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
            sources = tuple(last if place == at else FRESH for place in range(len(fed.sources)))
            return Draft((*draft.nodes, replace(fed, sources=sources)))
    return None
