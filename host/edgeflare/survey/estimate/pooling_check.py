"""Whether the device surprises as often under every condition, which pooled rates assume."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare.survey.estimate.rate import Fact, Sample

PERMUTATIONS = 499


def pooling_p_value(
    fact: Fact, sample: Sample, slices: NDArray[np.int64], rng: np.random.Generator
) -> float:
    """Return the probability of slices that differ as much, if surprises do not depend on them.

    The surprises are shuffled among the items asked of each stratum and prediction. What is
    compared is the sum over the slices of (surprises − expected)² / expected.

    Args:
        fact: what was foretold and seen.
        sample: which items were asked.
        slices: (items,) the slice of each, from 0; of items with −1 nothing is looked at.
        rng: from which the shuffles are drawn.

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
