"""The rate of a slice, such as one condition, from what the device said about all items.

Few of the items of a slice were asked, so their answers alone leave its rate wide open. Here the
slice has in each stratum the surprises that all items of the stratum have: as if the device
surprised as often under every condition, given what the host foretells and the twin's margin (a
synthetic estimate, as for small areas). `pooling_p_value` tests that.
"""

from __future__ import annotations

from dataclasses import replace
from math import floor

import numpy as np
from numpy.typing import NDArray

from edgeflare.statistics.mover import difference
from edgeflare.statistics.weighted_count import CountLimits, gamma_limits
from edgeflare.survey.items.survey_facts import Fact, Sample
from edgeflare.survey.rates.rate_interval import Limits, Rate, rate

PERMUTATIONS = 499
"""Permutations of the surprises: enough for a p-value of 1 in 500."""


def pooled_rate(
    fact: Fact, sample: Sample, chosen: NDArray[np.bool_], confidence: float = 0.95
) -> Rate:
    """Return the rate of a slice, with the one from its own answers beside it.

    Args:
        fact: what was foretold and seen.
        sample: items that were asked.
        chosen: (items,) bool, the items of the slice.
        confidence: confidence of both intervals.

    """
    alone = rate(fact, sample, chosen, confidence)
    if alone.items == 0:
        return replace(alone, alone=Limits(alone.estimate, alone.low, alone.high))
    open_items = chosen & ~sample.asked
    known = alone.seen + int((open_items & fact.foretold).sum())
    more = _surprises(fact, sample, open_items & ~fact.foretold, confidence)
    less = _surprises(fact, sample, open_items & fact.foretold, confidence)
    total, low, high = (known + end for end in difference(more, less))
    most = alone.seen + int(open_items.sum())
    return Rate(
        estimate=total / alone.items,
        low=max(low, alone.seen) / alone.items,
        high=min(high, most) / alone.items,
        items=alone.items,
        asked=alone.asked,
        seen=alone.seen,
        alone=Limits(alone.estimate, alone.low, alone.high),
    )


def pooling_p_value(
    fact: Fact, sample: Sample, slices: NDArray[np.int64], rng: np.random.Generator
) -> float:
    """Return the probability of slices that differ as much, if surprises do not depend on them.

    The surprises are shuffled among the items asked of each stratum and prediction. What is
    compared is the sum over the slices of (surprises − expected)² / expected.

    Args:
        fact: what was foretold and seen.
        sample: items that were asked.
        slices: (items,) the slice of each, from 0; of items with −1 nothing is looked at.
        rng: generator of all random draws.

    """
    asked = sample.asked & (slices >= 0)
    if not asked.any():
        return 1.0
    surprised = (fact.seen != fact.foretold)[asked].astype(np.float64)
    if not surprised.any():
        return 1.0
    kinds = (2 * sample.stratum + fact.foretold)[asked]
    of, count = slices[asked], int(slices.max()) + 1
    rates = np.bincount(kinds, weights=surprised) / np.maximum(np.bincount(kinds), 1)
    expected = np.bincount(of, weights=rates[kinds], minlength=count)
    on = expected > 0.0

    def unevenness(values: NDArray[np.float64]) -> float:
        seen = np.bincount(of, weights=values, minlength=count)
        return float(((seen[on] - expected[on]) ** 2 / expected[on]).sum())

    order = np.argsort(kinds, kind="stable")
    found, as_uneven = unevenness(surprised), 0
    for _ in range(PERMUTATIONS):
        shuffled = np.empty_like(surprised)
        shuffled[order] = surprised[np.lexsort((rng.random(len(kinds)), kinds))]
        as_uneven += unevenness(shuffled) >= found
    return (1 + as_uneven) / (1 + PERMUTATIONS)


def _surprises(
    fact: Fact, sample: Sample, where: NDArray[np.bool_], confidence: float
) -> CountLimits:
    """Return the surprises among items of one prediction, none of which was asked."""
    open_items = int(where.sum())
    if not open_items:
        return CountLimits(0.0, 0.0, 0.0)
    strata = int(sample.stratum.max()) + 1
    like = fact.foretold == bool(fact.foretold[where][0])
    asked = np.bincount(sample.stratum[like & sample.asked], minlength=strata)
    surprised = like & sample.asked & (fact.seen != fact.foretold)
    hits = np.bincount(sample.stratum[surprised], minlength=strata)
    # Each surprise that was seen stands for so many of the items that were not asked.
    weight = np.bincount(sample.stratum[where], minlength=strata) / np.maximum(asked, 1)
    count = float((weight * hits).sum())
    spread = 1.0 - (hits + 0.5) / (asked + 1.0)
    # How often a stratum surprises is not known, and given that, how often these items do.
    variance = float(((weight**2 + weight) * hits * spread).sum())
    heaviest = float(weight.max())
    more = (count + heaviest, variance + heaviest**2 + heaviest)
    low, high = gamma_limits((count, variance), more, confidence)
    # What is bounded is a whole number of items, which may be none where less than one is expected.
    low, high = min(floor(low), count), max(high, count)
    return CountLimits(min(count, open_items), min(low, open_items), min(high, open_items))
