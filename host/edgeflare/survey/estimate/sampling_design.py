"""Which items the device is asked about next: drawn at random, where it may surprise more often."""

from __future__ import annotations

from bisect import bisect_right
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
        left, drawn = self._asked < self.strata.sizes, []
        distribution = _Distribution(shares, left)
        for position in self._rng.random(count).tolist():
            stratum = distribution.at(position)
            drawn.append(self._orders[stratum][self._asked[stratum]])
            self._shares.append(distribution.shares)
            self._asked[stratum] += 1
            if self._asked[stratum] == len(self._orders[stratum]):
                left[stratum] = False
                distribution = _Distribution(distribution.shares, left)
        self._items += drawn
        return drawn

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


class _Distribution:
    """With which probability each stratum is drawn that has items left.

    Attributes:
        shares: (strata,), which add up to 1; nobody changes them.

    """

    def __init__(self, shares: NDArray[np.float64], left: NDArray[np.bool_]) -> None:
        """Prepare to draw by shares, (strata,), or all alike where those of what is left are 0."""
        among = shares * left
        if among.sum() == 0.0 and left.any():
            among = left.astype(np.float64)
        self.shares = among / (among.sum() or 1.0)
        self._steps = np.cumsum(self.shares).tolist()

    def at(self, position: float) -> int:
        """Return the stratum at a position from 0 to 1."""
        return bisect_right(self._steps, position * self._steps[-1])
