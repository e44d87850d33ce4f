"""Which items the device is asked about next: drawn at random, where it may surprise more often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.survey.estimate.allocation import first_shares, next_shares
from edgeflare.survey.estimate.rate import Sample
from edgeflare.survey.estimate.strata import strata_of

FIRST_ROUND = 256
"""Items of the first round, of which rates are guessed for the second."""


@dataclass(frozen=True, slots=True)
class Draws:
    """The items that were drawn, in their order.

    Attributes:
        items: (draws,) int64.
        shares: (draws, strata), the probability with which each stratum would have been drawn;
            within a stratum every item that was left was as probable as any other.

    """

    items: NDArray[np.int64]
    shares: NDArray[np.float64]


class SamplingDesign:
    """Draws items without replacement, round by round.

    For each draw a stratum is drawn with probabilities that depend on what was seen in the rounds
    before, and in it an item, all that are left alike. So the items asked in a stratum are a simple
    random sample of it, and the probability of each draw is known, which tests that are looked at
    all the time need (`sequential_test`).
    """

    def __init__(
        self,
        margin: NDArray[np.float64],
        foretold: NDArray[np.bool_],
        doubtful: NDArray[np.bool_],
        rng: np.random.Generator,
    ) -> None:
        """Prepare to draw.

        Args:
            margin: (items,) how far the twin is from deciding otherwise.
            foretold: (items,) the host foretells a deviation.
            doubtful: (items,) a member of the twin's ensemble decides otherwise.
            rng: from which all is drawn.

        """
        self.strata = strata_of(margin, foretold, doubtful)
        self._rng = rng
        # One number for each item, whatever its stratum: so surveys of other builds with the same
        # generator ask about the same items where they can (permanent random numbers).
        order = np.argsort(rng.random(len(margin)), kind="stable")
        of = self.strata.of[order]
        self._orders = [order[of == stratum].tolist() for stratum in range(self.strata.count)]
        self._asked = np.zeros(self.strata.count, dtype=np.int64)
        self._surprises = np.zeros(self.strata.count, dtype=np.int64)
        self._items: list[int] = []
        self._shares: list[NDArray[np.float64]] = []

    @property
    def left(self) -> int:
        """How many items were not drawn yet."""
        return len(self.strata.of) - len(self._items)

    @property
    def round_size(self) -> int:
        """How many items the next round should have: half as many as were drawn so far."""
        return min(self.left, max(FIRST_ROUND, len(self._items) // 2))

    @property
    def draws(self) -> Draws:
        """What was drawn so far."""
        shares = np.asarray(self._shares).reshape(len(self._items), self.strata.count)
        return Draws(np.asarray(self._items, dtype=np.int64), shares)

    def draw(self, count: int) -> list[int]:
        """Draw the next items, at most so many as are left."""
        count = min(count, self.left)
        if count == 0:
            return []
        if not self._items:
            shares = first_shares(self.strata)
        else:
            shares = next_shares(self.strata, self._asked, self._surprises, count)
        shares = shares * (self._asked < self.strata.sizes)
        return [self._draw_one(shares, position) for position in self._rng.random(count)]

    def _draw_one(self, shares: NDArray[np.float64], position: float) -> int:
        """Draw an item; `shares` are changed where a stratum has none left."""
        shares /= shares.sum()
        steps = np.cumsum(shares)
        stratum = int(np.searchsorted(steps, position * steps[-1], side="right"))
        item = int(self._orders[stratum][self._asked[stratum]])
        self._items.append(item)
        self._shares.append(shares.copy())
        self._asked[stratum] += 1
        if self._asked[stratum] == len(self._orders[stratum]):
            shares[stratum] = 0.0
            if shares.sum() == 0.0:
                shares[:] = self._asked < self.strata.sizes
        return item

    def tell(self, items: Sequence[int], surprised: NDArray[np.bool_]) -> None:
        """Take what the device answered otherwise than the twin foretold.

        Args:
            items: that were drawn.
            surprised: (items,) bool.

        """
        strata = self.strata.of[np.asarray(items, dtype=np.int64)]
        self._surprises += np.bincount(strata[surprised], minlength=self.strata.count)

    def sample_of(self, asked: NDArray[np.bool_]) -> Sample:
        """Return the sample that rates are estimated from."""
        return Sample(self.strata.of, asked)
