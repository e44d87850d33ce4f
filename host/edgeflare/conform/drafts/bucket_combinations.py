"""Which combinations of two parameters' buckets models have had."""

from __future__ import annotations

from itertools import combinations

from edgeflare.conform.drafts.cells import Cell, cell_buckets
from edgeflare.conform.drafts.draft import DraftNode

_Combination = tuple[tuple[str, str], tuple[str, str]]


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
