"""A test of whether a rate lies below a limit, that may be looked at after every draw.

Two bets are made against each draw: one wins where the rate is below the limit, one where it is
above. Whoever bets against the truth multiplies a stake by 1 / alpha with a probability of at most
alpha, however often one looks (Ville's inequality; Waudby-Smith and Ramdas 2024). Each draw is
turned into an unbiased estimate of the rate by the probability that its item had, given all that
was drawn before (Shekhar et al. 2023). What the host foretells is known, and is bet on with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from edgeflare.survey.estimate.rate import Fact
from edgeflare.survey.estimate.sampling_design import Draws
from edgeflare.survey.estimate.strata import Strata

LARGEST_STAKE = 0.75
"""Share of the capital that one draw may lose at most."""


@dataclass(frozen=True, slots=True)
class LimitEvidence:
    """How much the draws say.

    Attributes:
        below: natural logarithm of the largest capital of who bet that the rate is below the limit.
        above: the same of who bet that it is above.

    """

    below: float
    above: float

    def decided(self, confidence: float) -> bool | None:
        """Return whether the rate is below the limit; None where the draws do not decide it.

        Args:
            confidence: 1 − the probability with which a wrong answer is ever given.

        """
        needed = -log(1.0 - confidence)
        if self.below < needed and self.above < needed:
            return None
        return self.below >= self.above


def limit_evidence(
    fact: Fact,
    strata: Strata,
    draws: Draws,
    limit: float,
    chosen: NDArray[np.bool_] | None = None,
) -> LimitEvidence:
    """Return what the draws say of a rate and a limit.

    Args:
        fact: what was foretold of each item, and seen of those that were drawn.
        strata: strata that the items were drawn from.
        draws: all of them, in their order.
        limit: limit that the rate is compared with.
        chosen: (items,) bool, the items that the rate is about; None for all.

    """
    of = np.ones(len(fact.seen), dtype=bool) if chosen is None else chosen
    found = _estimates(fact, strata, draws, of)
    return LimitEvidence(_largest_capital(found, limit, 1.0), _largest_capital(found, limit, -1.0))


@dataclass(frozen=True, slots=True)
class _Estimates:
    """Unbiased estimates of the rate, one from each draw of a chosen item: (draws,) each.

    Attributes:
        values: the estimates.
        least, most: the limits that they could have had, given what was drawn before.

    """

    values: NDArray[np.float64]
    least: NDArray[np.float64]
    most: NDArray[np.float64]


def _largest_capital(found: _Estimates, limit: float, sign: float) -> float:
    """Return the logarithm of the largest capital of who bets that estimates are below a limit.

    With the sign −1 the bet is that they are above it. Each stake depends on the draws before it
    alone: it is the mean gain over the mean square, which is about the stake of fastest growth.
    """
    gains = sign * (limit - found.values)
    worst = -np.minimum(sign * (limit - found.least), sign * (limit - found.most))
    counts = np.arange(1.0, len(gains) + 1.0)
    means = _sums_before(gains) / counts
    squares = (0.25 + _sums_before(gains**2)) / counts
    most = np.where(worst > 0.0, LARGEST_STAKE / np.maximum(worst, 1e-12), np.inf)
    stakes = np.clip(means / squares, 0.0, most)
    capital = np.cumsum(np.log1p(stakes * gains))
    return float(capital.max(initial=0.0))


def _sums_before(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each place the sum of all values before it."""
    return np.asarray(np.cumsum(values, axis=0) - values)


def _estimates(fact: Fact, strata: Strata, draws: Draws, of: NDArray[np.bool_]) -> _Estimates:
    items = int(of.sum())
    drawn = draws.items
    chosen, foretold = of[drawn], fact.foretold[drawn]
    signs = np.where(foretold, -1.0, 1.0) * (fact.seen[drawn] != foretold)
    known = float((fact.foretold & of).sum()) + _sums_before(signs * chosen)
    places = np.eye(strata.count)[strata.of[drawn]]
    left = strata.sizes - _sums_before(places)
    open_plain = _left(strata, of & ~fact.foretold, places, chosen & ~foretold)
    open_foretold = _left(strata, of & fact.foretold, places, chosen & foretold)
    # The probability of each item that is left, and from it, given that a chosen one is drawn, how
    # many items the one that is drawn stands for.
    each = draws.shares / np.maximum(left, 1.0)
    total = (each * (open_plain + open_foretold)).sum(axis=1, keepdims=True)
    weights = np.divide(total, each, out=np.zeros_like(each), where=each > 0.0)
    mine = (weights * places).sum(axis=1)
    least = known - (weights * (open_foretold > 0.0)).max(axis=1, initial=0.0)
    most = known + (weights * (open_plain > 0.0)).max(axis=1, initial=0.0)
    values = known + signs * mine
    return _Estimates(*(array[chosen] / items for array in (values, least, most)))


def _left(
    strata: Strata,
    items: NDArray[np.bool_],
    places: NDArray[np.float64],
    drawn: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return how many of some items each stratum has left before each draw: (draws, strata)."""
    sizes = np.bincount(strata.of[items], minlength=strata.count)
    return np.asarray(sizes - _sums_before(places * drawn[:, np.newaxis]))
