"""The strata that items are drawn from: alike in how surely the twin foretells the device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.survey.items.survey_facts import Sample

LEAST = 64
"""Items of the smallest stratum of a block; more where margins are equal."""


@dataclass(frozen=True, slots=True)
class Strata:
    """Items divided into strata.

    Attributes:
        of: (items,) int64, the stratum of each.
        blocks: the strata of each block, in the order of their margins, smallest first.

    """

    of: NDArray[np.int64]
    blocks: tuple[tuple[int, ...], ...]

    @property
    def count(self) -> int:
        """How many strata there are."""
        return sum(map(len, self.blocks))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Items in each stratum: (count,)."""
        return np.bincount(self.of, minlength=self.count)


def strata_of(
    margin: NDArray[np.float64], foretold: NDArray[np.bool_], doubtful: NDArray[np.bool_]
) -> Strata:
    """Divide items into strata.

    Items of which the host foretells a deviation, and those about which the twin's ensemble
    disagrees, are blocks of their own. In each block one half of the items, those with the largest
    margins, is a stratum, half of the rest the next, and so on.

    Args:
        margin: (items,) how far the twin is from deciding otherwise.
        foretold: (items,) the host foretells a deviation.
        doubtful: (items,) a member of the ensemble decides otherwise than the twin.

    """
    kind = foretold.astype(np.int64) + 2 * doubtful
    of = np.zeros(len(margin), dtype=np.int64)
    blocks: list[tuple[int, ...]] = []
    begun = 0
    for stratum in np.unique(kind):
        items = np.flatnonzero(kind == stratum)
        levels = _halves(margin[items])
        of[items] = begun + levels
        count = int(levels.max()) + 1
        blocks.append(tuple(range(begun, begun + count)))
        begun += count
    return Strata(of, tuple(blocks))


def _halves(margin: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the level of each item, 0 for the smallest margins; equal margins have one level."""
    bounds = [len(margin)]
    while bounds[-1] // 2 >= LEAST:
        bounds.append(bounds[-1] // 2)
    last = np.searchsorted(np.sort(margin), margin, side="right") - 1
    levels = np.searchsorted(np.asarray(bounds[::-1]), last, side="right")
    return np.unique(levels, return_inverse=True)[1].reshape(-1).astype(np.int64)


@dataclass(frozen=True, slots=True)
class StratumWeights:
    """The strata of a sample; all arrays are (strata,).

    Attributes:
        sizes: int64, items.
        asked: int64, of them, those that were asked.

    """

    sizes: NDArray[np.int64]
    asked: NDArray[np.int64]

    @classmethod
    def of(cls, sample: Sample) -> StratumWeights:
        """Return the strata of a sample."""
        sizes = np.bincount(sample.stratum)
        return cls(sizes, np.bincount(sample.stratum[sample.asked], minlength=len(sizes)))

    @property
    def weight(self) -> NDArray[np.float64]:
        """Items that one that was asked stands for: float64.

        Of a stratum of which nothing was asked, one item that is asked next would stand for all.
        """
        return np.asarray(self.sizes / np.maximum(self.asked, 1))

    @property
    def unasked(self) -> NDArray[np.float64]:
        """The share that was not asked: float64."""
        return np.asarray((self.sizes - self.asked) / np.maximum(self.sizes, 1))
