"""Which items the device is asked about next: drawn at random, where it may surprise more often.

They are drawn from strata, in which items are alike in how surely the twin foretells the device.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.survey.items.survey_facts import Sample, SurveyFacts, surprises

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


FLOOR = 0.4
"""Share of the draws that does not depend on what was seen: half of it in proportion to the items
of a stratum, half to the root of that. It bounds the weight of every item, and keeps a stratum in
which nothing was seen at first from being left alone."""

_PSEUDO = 1.0
"""Surprises, and as many items without, that are added to those seen where a rate is guessed."""

FIRST_ROUND = 256
"""Items of the first round, of which rates are guessed for the second."""

_STREAM = 0x5EED
"""Tells the generator of the draws from those of chains, which have the run seed in common."""


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
            rng: generator of all random draws.

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
            items: items that were drawn.
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


def first_shares(strata: Strata) -> NDArray[np.float64]:
    """Return the share of each stratum while nothing is known: by the root of its items."""
    roots = np.sqrt(strata.sizes)
    return np.asarray(roots / roots.sum())


def next_shares(
    strata: Strata, asked: NDArray[np.int64], surprises: NDArray[np.int64], count: int
) -> NDArray[np.float64]:
    """Return the share of each stratum in the next draws.

    After them the items asked should be in proportion to size times standard deviation (Neyman's
    allocation). The rates behind the deviations are those seen, made to fall with the margin within
    a block, which pools strata that do not differ.

    Args:
        strata: strata of all items.
        asked: (strata,) items that were asked.
        surprises: (strata,) of those, how many the twin did not foretell.
        count: how many are drawn next.

    Returns:
        (strata,), adding up to 1; 0 where all items were asked.

    """
    sizes = strata.sizes
    left = sizes - asked
    rates = falling_rates(asked, surprises, strata.blocks)
    wanted = _capped(sizes * np.sqrt(rates * (1.0 - rates)), sizes, int(asked.sum()) + count)
    missing = np.maximum(wanted - asked, 0.0)
    roots = np.sqrt(sizes) * (left > 0)
    floor = 0.5 * left / left.sum() + 0.5 * roots / roots.sum()
    if missing.sum() == 0.0:
        return np.asarray(floor)
    shares = (1.0 - FLOOR) * missing / missing.sum() + FLOOR * floor
    shares[left == 0] = 0.0
    return np.asarray(shares / shares.sum())


def falling_rates(
    asked: NDArray[np.int64],
    surprises: NDArray[np.int64],
    blocks: Sequence[tuple[int, ...]],
) -> NDArray[np.float64]:
    """Return a guess at each stratum's rate of surprises that falls with the margin in a block."""
    rates = np.zeros(len(asked))
    for block in blocks:
        pools: list[tuple[float, float, list[int]]] = []
        for stratum in block:
            pools.append((float(surprises[stratum]), float(asked[stratum]), [stratum]))
            while len(pools) > 1 and _rate(pools[-2]) <= _rate(pools[-1]):
                last, before = pools.pop(), pools.pop()
                pools.append((before[0] + last[0], before[1] + last[1], before[2] + last[2]))
        for seen, of, members in pools:
            rates[members] = (seen + _PSEUDO) / (of + 2.0 * _PSEUDO)
    return rates


def _rate(pool: tuple[float, float, list[int]]) -> float:
    return pool[0] / max(pool[1], 1.0)


def _capped(
    shares: NDArray[np.float64], most: NDArray[np.int64], count: int
) -> NDArray[np.float64]:
    """Divide a count in proportion to shares, nowhere more than there is."""
    divided = np.zeros(len(shares))
    for _ in range(len(shares)):
        free = divided < most
        rest = count - divided.sum()
        if rest < 1.0 or not free.any():
            break
        divided[free] += rest * shares[free] / shares[free].sum()
        divided = np.minimum(divided, most)
    return divided


@dataclass(frozen=True, slots=True)
class SamplingRounds:
    """Draws the items of each round.

    Attributes:
        design: draws them; what it draws depends on the run seed, the host's answers, and the
            device's in the rounds before.
        most: items that are drawn at most.
        earlier: bounds on the items that there were before, rising. A round ends at each of them,
            as it did then: the probabilities of its draws depend on how many they are.

    """

    design: SamplingDesign
    most: int
    earlier: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        facts: SurveyFacts,
        rng_seed: int,
        budget: int | None,
        earlier: tuple[int, ...] = (),
    ) -> SamplingRounds:
        """Prepare to draw.

        Args:
            facts: what the host says of all items.
            rng_seed: the run seed.
            budget: items that are drawn at most; None for all.
            earlier: budgets that there were before, rising.

        """
        rng = np.random.default_rng([rng_seed, _STREAM])
        design = SamplingDesign(facts.margin, facts.compression, facts.doubtful, rng)
        most = facts.items if budget is None else min(budget, facts.items)
        return cls(design, most, earlier)

    @classmethod
    def replayed(
        cls,
        facts: SurveyFacts,
        rng_seed: int,
        budget: int | None,
        earlier: tuple[int, ...] = (),
    ) -> SamplingRounds:
        """Draw the rounds again in which the device was asked, and tell what it answered."""
        rounds = cls.of(facts, rng_seed, budget, earlier)
        while (items := rounds.draw()) and facts.asked[items].all():
            rounds.tell(items, facts)
        return rounds

    def draw(self) -> list[int]:
        """Return the items of the next round; none where nothing is left to ask."""
        drawn = len(self.design.draws.items)
        bound = min((end for end in self.earlier if end > drawn), default=self.most)
        count = min(self.design.round_size, min(bound, self.most) - drawn)
        return self.design.draw(count) if count > 0 else []

    def tell(self, items: Sequence[int], facts: SurveyFacts) -> None:
        """Take what the device answered about the items of a round."""
        self.design.tell(items, surprises(facts)[np.asarray(items, np.int64)])
