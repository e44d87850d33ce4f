"""Models of one operator each, drawn evenly over the buckets of all cells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from edgeflare.conform.drafts.cells import (
    Cell,
    cell_parameters,
    drawn_configuration,
    drawn_seed,
    with_setting,
)
from edgeflare.conform.drafts.coverage import Bucket, Coverage
from edgeflare.conform.drafts.draft import FRESH, Draft, DraftNode, DraftOutcome, NodeGraphs
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


class NodeDrawing(ABC):
    """Draws models of one operator each."""

    def __init__(self, coverage: Coverage, rng: np.random.Generator) -> None:
        """Begin.

        Args:
            coverage: says which cells count and what is new; is told what is drawn.
            rng: every draw.

        """
        self._coverage, self._rng, self._graphs = coverage, rng, NodeGraphs()

    def ask(self, count: int) -> list[Draft]:
        """Return the next models."""
        drafts: list[Draft] = []
        failed = 0
        while len(drafts) < count and failed <= self.most_failed:
            node = self.drawn()
            failed += node is None
            if node is not None:
                drafts.append(Draft((node,)))
                self._coverage.expect(drafts[-1])
        return drafts

    def tell(self, drafts: Sequence[Draft], outcomes: Sequence[DraftOutcome]) -> None:
        """Take what became of models that were asked for."""
        for draft, outcome in zip(drafts, outcomes, strict=True):
            self._coverage.settle(draft, outcome)

    @property
    @abstractmethod
    def most_failed(self) -> int:
        """How many draws may fail before no more are tried."""

    @abstractmethod
    def drawn(self) -> DraftNode | None:
        """Return the next operator, None where the draw fails."""


class UniformDrawing(NodeDrawing):
    """Draws one cell after the other, in an order that changes with each round of all cells.

    After each round, cells with many buckets come once more, or several times. Of a few
    configurations the one is taken that covers most, and of these the one with most new
    combinations of two buckets.
    A cell that the device has only ever refused is drawn no more.
    """

    def __init__(self, coverage: Coverage, rng: np.random.Generator) -> None:
        """Begin; see `NodeDrawing`."""
        super().__init__(coverage, rng)
        self._waiting: list[Cell] = []

    @property
    def most_failed(self) -> int:
        """As many as there are cells."""
        return len(self._coverage.cells)

    def drawn(self) -> DraftNode | None:
        """Return an operator of the next cell."""
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
