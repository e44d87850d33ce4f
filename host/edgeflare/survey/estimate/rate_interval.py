"""The estimate of a rate, with an interval that is valid whatever the twin is worth.

The host foretells the fact of every item. What the device says otherwise is a surprise. The
estimate is the rate foretold, plus the surprises where nothing was foretold, less those where it
was, each weighted by the items of its stratum over those that were asked in it (a difference
estimator with unequal probabilities; prediction-powered inference, Angelopoulos et al. 2023).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare.survey.estimate.rate import Fact, Rate, Sample
from edgeflare.survey.estimate.strata import StratumWeights
from edgeflare.survey.estimate.weighted_count import CountLimits, count_limits


def rate(
    fact: Fact, sample: Sample, chosen: NDArray[np.bool_] | None = None, confidence: float = 0.95
) -> Rate:
    """Estimate a rate.

    The limits of the two sums of surprises are combined by the squares of their distances from the
    estimate (MOVER, Zou and Donner 2008).

    Args:
        fact: what was foretold and seen.
        sample: which items were asked.
        chosen: (items,) bool, the items that the rate is about; None for all.
        confidence: of the interval.

    Raises:
        UserError: scipy is not installed.

    """
    of = np.ones(len(sample.asked), dtype=bool) if chosen is None else chosen
    items = int(of.sum())
    asked = of & sample.asked
    seen = int((fact.seen & asked).sum())
    if items == 0:
        return Rate(0.0, 0.0, 1.0, 0, 0, 0)
    strata = StratumWeights.of(sample)
    more = _surprises(of & ~fact.foretold, asked & fact.seen, sample, strata, confidence)
    less = _surprises(of & fact.foretold, asked & ~fact.seen, sample, strata, confidence)
    total = float((of & fact.foretold).sum()) + more.count - less.count
    below = float(np.hypot(more.count - more.low, less.high - less.count))
    above = float(np.hypot(more.high - more.count, less.count - less.low))
    certain = asked & fact.seen
    least, most = int(certain.sum()), items - int((asked & ~fact.seen).sum())
    estimate = min(max(total, least), most)
    low, high = max(total - below, least), min(total + above, most)
    return Rate(
        estimate / items, min(low, estimate) / items, max(high, estimate) / items,
        items, int(asked.sum()), seen,
    )  # fmt: skip


def _surprises(
    where: NDArray[np.bool_],
    surprised: NDArray[np.bool_],
    sample: Sample,
    strata: StratumWeights,
    confidence: float,
) -> CountLimits:
    """Return how many surprises there are among the items of one prediction, with limits."""
    count = len(strata.sizes)

    def by_stratum(items: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(sample.stratum[items], minlength=count)

    return count_limits(
        items=by_stratum(where),
        asked=by_stratum(where & sample.asked),
        hits=by_stratum(where & surprised),
        drawn=strata.asked,
        weight=strata.weight,
        unasked=strata.unasked,
        confidence=confidence,
    )
