"""One coverage criterion: items that models have, and which of them were run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

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
        covered: in models that the device took.
        refused: that the device only ever refused.
        known: all of them, what was refused included.

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
