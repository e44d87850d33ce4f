"""Whether a rate lies below a limit, by a test that may be looked at after every draw.

Each draw is turned into an unbiased estimate of the rate by the probability that its item had,
given all that was drawn before (Shekhar et al. 2023). What the host foretells is known, and is bet
on with it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare.statistics.sequential_test import (
    BoundedEstimates,
    LimitEvidence,
    evidence,
    sums_before,
)
from edgeflare.survey.items.sample import Fact
from edgeflare.survey.sampling.sampling_design import Draws
from edgeflare.survey.sampling.strata import Strata


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
    return evidence(_estimates(fact, strata, draws, of), limit)


def _estimates(fact: Fact, strata: Strata, draws: Draws, of: NDArray[np.bool_]) -> BoundedEstimates:
    items = int(of.sum())
    drawn = draws.items
    chosen, foretold = of[drawn], fact.foretold[drawn]
    signs = np.where(foretold, -1.0, 1.0) * (fact.seen[drawn] != foretold)
    known = float((fact.foretold & of).sum()) + sums_before(signs * chosen)
    places = np.eye(strata.count)[strata.of[drawn]]
    left = strata.sizes - sums_before(places)
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
    return BoundedEstimates(*(array[chosen] / items for array in (values, least, most)))


def _left(
    strata: Strata,
    items: NDArray[np.bool_],
    places: NDArray[np.float64],
    drawn: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return how many of some items each stratum has left before each draw: (draws, strata)."""
    sizes = np.bincount(strata.of[items], minlength=strata.count)
    return np.asarray(sizes - sums_before(places * drawn[:, np.newaxis]))
