"""How much of what the specification has, and the device takes, was run.

A coverage criterion is items that models have, and which of them were run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Generic, TypeVar

import msgspec

from edgeflare.conform.drafts.cell_pairs import CellPair
from edgeflare.conform.drafts.cells import Cell, cell_buckets, cell_parameters
from edgeflare.conform.drafts.draft import FRESH, Draft, DraftNode, DraftOutcome

_Combination = tuple[tuple[str, str], tuple[str, str]]

Bucket = tuple[str, str, str, str]
"""An operator, a type, a parameter, and one of the parameter's buckets."""


class UncoveredParts(msgspec.Struct, frozen=True, kw_only=True):
    """What no model of a run covers.

    Attributes:
        cells: operators and types.
        buckets: operator, type, parameter and range.

    """

    cells: tuple[Cell, ...]
    buckets: tuple[Bucket, ...]


class Coverage:
    """Coverage of cells, of parameters' buckets and of ordered pairs of cells.

    These are the criteria of MEMO's §2.2, layer types, parameters and pairs. What counts is what
    the specification has and the device takes: an item that it has only ever refused, or that
    belongs to a cell that it has only ever refused, is left out.

    Attributes:
        cells: the cells that count.

    """

    def __init__(self, cells: Sequence[Cell], pairs: Iterable[CellPair] = ()) -> None:
        """Begin with nothing covered.

        Args:
            cells: the cells that count.
            pairs: the pairs that count; none where pairs are not asked for.

        """
        self.cells = tuple(cells)
        self._of_cells = Criterion[Cell](self.cells)
        self._of_pairs = Criterion[CellPair](pairs)
        self._buckets: dict[Cell, tuple[Bucket, ...]] = {
            cell: tuple(
                (*cell, parameter.name, bucket)
                for parameter in cell_parameters(cell)
                for bucket in parameter.buckets
            )
            for cell in self.cells
        }
        self._of_buckets = Criterion[Bucket](
            known for some in self._buckets.values() for known in some
        )
        self._combinations = BucketCombinations()

    def diverse(self, draft: Draft) -> int:
        """Return how many items a draft would add to those covered (Equation 1).

        M is all drafts so far, those among them of which nothing is known yet.
        """
        cells = {node.cell for node in draft.nodes}
        buckets = {bucket for node in draft.nodes for bucket in node_buckets(node)}
        return (
            sum(map(self._of_cells.is_new, cells))
            + sum(map(self._of_buckets.is_new, buckets))
            + sum(map(self._of_pairs.is_new, set(draft_pairs(draft))))
        )

    def new_combinations(self, node: DraftNode) -> int:
        """Return how many combinations of two buckets no node had that was expected."""
        return self._combinations.new(node)

    def expect(self, draft: Draft) -> None:
        """Count a draft as covered until `settle` says what became of it."""
        for node in draft.nodes:
            self._combinations.add(node)
            self._of_cells.expect([node.cell])
            self._of_buckets.expect(node_buckets(node))
        self._of_pairs.expect(draft_pairs(draft))

    def settle(self, draft: Draft, outcome: DraftOutcome) -> None:
        """Take what became of a draft that was expected."""
        for node in draft.nodes:
            self._of_cells.expect_no_more([node.cell])
            self._of_buckets.expect_no_more(node_buckets(node))
        self._of_pairs.expect_no_more(draft_pairs(draft))
        self.add(draft, outcome)

    def add(self, draft: Draft, outcome: DraftOutcome) -> None:
        """Take what became of a draft.

        Nodes count by what became of them alone, and pairs where both of their nodes were taken
        alone, by what became of the whole.
        """
        for node, taken in zip(draft.nodes, outcome.nodes, strict=True):
            if taken:
                self._of_cells.cover([node.cell])
                self._of_buckets.cover(node_buckets(node))
            elif taken is not None:
                self._of_cells.refuse([node.cell])
                self._of_buckets.refuse(node_buckets(node))
        if outcome.whole:
            self._of_pairs.cover(draft_pairs(draft))
        elif all(outcome.nodes):
            self._of_pairs.refuse(draft_pairs(draft))

    def avoid(self, draft: Draft, places: Collection[int]) -> None:
        """Take a draft that is not run, since it is known to crash or hang.

        It covers nothing, but what it has is no aim any more once that was so several times.

        Args:
            draft: the draft that is left out.
            places: positions of the nodes that are known to do so.

        """
        self._of_buckets.avoid(
            {bucket for at in places for bucket in node_buckets(draft.nodes[at])}
        )
        self._of_pairs.avoid(
            {
                (draft.nodes[source].cell, node.cell)
                for at, node in enumerate(draft.nodes)
                for source in node.sources
                if source != FRESH and (at in places or source in places)
            }
        )

    def new_cells(self) -> list[Cell]:
        """Return the cells that are worth drawing for their own sake."""
        return [cell for cell in self.cells if self._of_cells.is_new(cell)]

    def new_buckets(self, cell: Cell) -> list[Bucket]:
        """Return the buckets of a cell that are worth drawing."""
        return [bucket for bucket in self._buckets.get(cell, ()) if self._of_buckets.is_new(bucket)]

    def is_new_pair(self, pair: CellPair) -> bool:
        """Return whether a pair is worth drawing."""
        return self._of_pairs.is_new(pair) and not self.is_refused_pair(pair)

    def is_refused(self, cell: Cell) -> bool:
        """Return whether the device refuses a cell, as far as one can tell."""
        return self._of_cells.is_refused(cell)

    def is_refused_pair(self, pair: CellPair) -> bool:
        """Return whether the device refuses a pair or one of its cells."""
        return self._of_pairs.is_refused(pair) or any(map(self.is_refused, pair))

    @property
    def pairs(self) -> Iterable[CellPair]:
        """The pairs that count."""
        return self._of_pairs.known

    def cell_figure(self) -> CoverageFigure:
        """Return how many cells were covered, which costs little."""
        return self._of_cells.figure(self._of_cells.is_refused)

    def figures(self) -> dict[str, CoverageFigure]:
        """Return how much was covered, by what is counted."""
        return {
            "cells": self.cell_figure(),
            "buckets": self._of_buckets.figure(self._is_refused_bucket),
            "pairs": self._of_pairs.figure(self.is_refused_pair),
        }

    def uncovered(self) -> UncoveredParts:
        """Return what is not covered, of what the device takes."""
        return UncoveredParts(
            cells=tuple(cell for cell in self._of_cells.uncovered() if not self.is_refused(cell)),
            buckets=tuple(
                bucket
                for bucket in self._of_buckets.uncovered()
                if not self._is_refused_bucket(bucket)
            ),
        )

    def _is_refused_bucket(self, bucket: Bucket) -> bool:
        return self._of_buckets.is_refused(bucket) or self.is_refused(bucket[:2])


def node_buckets(node: DraftNode) -> Iterator[Bucket]:
    """Yield the buckets of a node's settings."""
    for name, bucket in cell_buckets(node.cell, node.configuration):
        yield (*node.cell, name, bucket)


def draft_pairs(draft: Draft) -> Iterator[CellPair]:
    """Yield the pairs of cells of a draft, once for each operand that another node feeds."""
    for node in draft.nodes:
        for source in node.sources:
            if source != FRESH:
                yield draft.nodes[source].cell, node.cell


class BucketCombinations:
    """The combinations of two buckets that nodes of each cell have had.

    Most faults of software need one or two of its parameters to be set in some way, and few need
    more (Kuhn, Wallace and Gallo, 2004), so that models that are to find them should differ in
    these.
    """

    def __init__(self) -> None:
        self._had: dict[Cell, set[_Combination]] = {}

    def new(self, node: DraftNode) -> int:
        """Return how many combinations of a node no other has had."""
        return len(_combinations(node) - self._had.get(node.cell, set()))

    def add(self, node: DraftNode) -> None:
        """Take a node that is going to be run."""
        self._had.setdefault(node.cell, set()).update(_combinations(node))


def _combinations(node: DraftNode) -> set[_Combination]:
    return set(combinations(cell_buckets(node.cell, node.configuration), 2))


ItemT = TypeVar("ItemT", bound=Hashable)

_REFUSALS = 3
"""How often the device has to refuse an item that it never took before it counts as none of the
device's: the reason of a single refusal may be something else that was in the model."""

_AVOIDANCES = 3
"""How often models with an item have to be left out, since they are known to crash or hang, before
it is no aim any more: others may have it that are not."""


@dataclass(frozen=True, slots=True)
class CoverageFigure:
    """How many items of one criterion were covered.

    Attributes:
        covered: items in models that the device took.
        refused: items that the device only ever refused.
        known: all items, what was refused included.

    """

    covered: int
    refused: int
    known: int

    @property
    def share(self) -> float:
        """The share covered of what the device takes; 1 where it takes nothing."""
        taken = self.known - self.refused
        return self.covered / taken if taken else 1.0


class Criterion(Generic[ItemT]):
    """Items, and what became of the models that have them.

    Attributes:
        known: the items that count, in their order.

    """

    def __init__(self, known: Iterable[ItemT]) -> None:
        """Begin with nothing covered."""
        self.known = dict.fromkeys(known)
        self._covered: set[ItemT] = set()
        self._expected: Counter[ItemT] = Counter()
        self._refusals: Counter[ItemT] = Counter()
        self._avoidances: Counter[ItemT] = Counter()

    def is_new(self, item: ItemT) -> bool:
        """Return whether an item counts and is not covered, expected to be, refused or avoided."""
        return (
            item in self.known
            and item not in self._covered
            and self._expected[item] == 0
            and self._refusals[item] < _REFUSALS
            and self._avoidances[item] < _AVOIDANCES
        )

    def is_refused(self, item: ItemT) -> bool:
        """Return whether the device refuses an item, as far as one can tell."""
        return item not in self._covered and self._refusals[item] >= _REFUSALS

    def expect(self, items: Iterable[ItemT]) -> None:
        """Count items as covered until it is known what became of a model."""
        self._expected.update(items)

    def expect_no_more(self, items: Iterable[ItemT]) -> None:
        """Undo an earlier `expect`."""
        self._expected.subtract(items)

    def cover(self, items: Iterable[ItemT]) -> None:
        """Take items of a model that the device took."""
        self._covered.update(item for item in items if item in self.known)

    def refuse(self, items: Iterable[ItemT]) -> None:
        """Take items of a model that the device refused."""
        self._refusals.update(items)

    def avoid(self, items: Iterable[ItemT]) -> None:
        """Take items of a model that is not run, since it is known to crash or hang."""
        self._avoidances.update(items)

    def uncovered(self) -> list[ItemT]:
        """Return the items that no model had that the device took, refused ones included."""
        return [item for item in self.known if item not in self._covered]

    def figure(self, is_refused: Callable[[ItemT], bool]) -> CoverageFigure:
        """Return how many items were covered.

        Args:
            is_refused: whether an item that is not covered is none of the device's.

        """
        refused = sum(map(is_refused, self.uncovered()))
        return CoverageFigure(len(self._covered), refused, len(self.known))
