"""The estimate of a rate, with an interval that is valid whatever the twin is worth.

The host foretells the fact of every item. What the device says otherwise is a surprise. The
estimate is the rate foretold, plus the surprises where nothing was foretold, less those where it
was, each weighted by the items of its stratum over those that were asked in it (a difference
estimator with unequal probabilities; prediction-powered inference, Angelopoulos et al. 2023). A
mean distance is estimated likewise.

That interval is about the very inputs that were surveyed. Where these were drawn at random from the
field, other inputs would have come out otherwise: `field_interval` takes that in. All items of an
input come from one draw, so inputs count, not items: the variance of the estimate is that between
inputs, and Wilson's interval is that of as many draws as have this variance (Korn and Graubard
1998).

Few of the items of a slice, such as one condition, were asked, so their answers alone leave its
rate wide open. By `pooled_rate` the slice has in each stratum the surprises that all items of the
stratum have: as if the device surprised as often under every condition, given what the host
foretells and the twin's margin (a synthetic estimate, as for small areas). `pooling_p_value` tests
that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import floor
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgeflare.record.json_types import Count, Share
from edgeflare.statistics.distributions import normal_deviate
from edgeflare.statistics.mover import difference
from edgeflare.statistics.proportion import wilson_interval
from edgeflare.statistics.weighted_count import CountLimits, count_limits, gamma_limits
from edgeflare.survey.items.survey_facts import Fact, Sample
from edgeflare.survey.sampling_design import StratumWeights


def rate(
    fact: Fact, sample: Sample, chosen: NDArray[np.bool_] | None = None, confidence: float = 0.95
) -> Rate:
    """Estimate a rate.

    The limits of the two sums of surprises are combined by the squares of their distances from the
    estimate (see `difference`).

    Args:
        fact: what was foretold and seen.
        sample: items that were asked.
        chosen: (items,) bool, the items that the rate is about; None for all.
        confidence: confidence of the interval.

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
    foretold = float((of & fact.foretold).sum())
    total, low, high = (foretold + end for end in difference(more, less))
    certain = asked & fact.seen
    least, most = int(certain.sum()), items - int((asked & ~fact.seen).sum())
    estimate = min(max(total, least), most)
    low, high = max(low, least), min(high, most)
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


@dataclass(frozen=True, slots=True)
class FieldInterval:
    """The limits of a rate in the field.

    Attributes:
        low, high: from 0 to 1; they hold those of the inputs surveyed.
        draws: independent draws that would say as much, at most the number of inputs: that few of
            them deviate under many conditions would not show in the variance.

    """

    low: Share
    high: Share
    draws: Annotated[float, msgspec.Meta(ge=0)]


def field_interval(
    found: Rate,
    fact: Fact,
    sample: Sample,
    inputs: NDArray[np.int64],
    chosen: NDArray[np.bool_],
    confidence: float = 0.95,
) -> FieldInterval:
    """Return the interval of a rate in the field.

    Args:
        found: the rate of the inputs surveyed.
        fact: what was foretold and seen.
        sample: items that were asked.
        inputs: (items,) the input of each item, from 0.
        chosen: (items,) bool, the items that the rate is about, as many of each input.
        confidence: confidence of the interval.

    """
    surveyed = np.unique(inputs[chosen])
    # The estimated share of each input's items: (inputs,).
    weights = StratumWeights.of(sample).weight[sample.stratum]
    surprise = np.where(fact.foretold, -1.0, 1.0) * (fact.seen != fact.foretold) * sample.asked
    values = np.where(chosen, fact.foretold + weights * surprise, 0.0)
    items = np.bincount(inputs[chosen], minlength=int(inputs.max()) + 1)
    shares = np.asarray(np.bincount(inputs, weights=values) / np.maximum(items, 1))[surveyed]
    count = len(surveyed)
    variance = float(shares.var(ddof=1)) / count if count > 1 else 0.0
    spread = found.value * (1.0 - found.value)
    # Where the device did nothing that was foretold, what was not asked varies around a rate of 0.
    known = variance == 0.0 or spread == 0.0
    draws = float(count) if known else min(max(spread / variance, 1.0), float(count))
    low, high = wilson_interval(found.value, draws, confidence)
    return FieldInterval(min(low, found.low), max(high, found.high), draws)


def mean_distance(
    foretold: NDArray[np.float64],
    seen: NDArray[np.float64],
    sample: Sample,
    chosen: NDArray[np.bool_],
    confidence: float,
) -> SignedEstimate | None:
    """Return the mean of what the device says, by a difference estimator.

    It is the mean of what is foretold over all chosen items, corrected by the weighted mean of the
    differences of those asked; an item that was asked weighs as many as its stratum has for each
    asked. The interval is a normal one, with the variance of each stratum; that of the weighted
    mean is linearised (Särndal, Swensson and Wretman, "Model Assisted Survey Sampling", 1992,
    sections 5.7 and 6.3). Items on which the device failed have no distance, and are left out.

    Args:
        foretold: (items,) float64, the distance of the twin; 0 where nothing is foretold.
        seen: (items,) float64, that of the device; NaN where it failed or was not asked.
        sample: items that the device was asked about.
        chosen: (items,) bool, the items of the slice.
        confidence: confidence of the interval, from 0 to 1.

    Returns:
        None where that cannot be said: no chosen item has a distance, or the device was asked about
        fewer than two items of a stratum with chosen ones, and not about all.

    """
    chosen = chosen & np.isfinite(foretold)
    known = sample.asked & chosen & np.isfinite(seen)
    if not known.any():
        return None
    strata = StratumWeights.of(sample)
    sizes, asked = strata.sizes, strata.asked
    touched = np.unique(sample.stratum[chosen])
    if (asked[touched] < np.minimum(2, sizes[touched])).any():
        return None
    weights = strata.weight[sample.stratum[known]]
    differences = seen[known] - foretold[known]
    correction = float(np.average(differences, weights=weights))
    residuals = np.zeros(len(sample.asked))
    residuals[known] = differences - correction
    variance = 0.0
    for stratum in touched[asked[touched] < sizes[touched]]:
        size, of = int(sizes[stratum]), int(asked[stratum])
        among = residuals[sample.asked & (sample.stratum == stratum)]
        variance += size * (size - of) / of * float(among.var(ddof=1))
    estimate = float(foretold[chosen].mean()) + correction
    half = normal_deviate(confidence) * float(np.sqrt(variance) / weights.sum())
    return SignedEstimate(estimate, estimate - half, estimate + half)


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate, with an interval.

    Attributes:
        value, low, high: from 0 to 1.
        items: number of items that the rate is about.
        asked: items among them that the device was asked about.
        seen: items asked that the device said yes to.
        alone: what the answers to a pooled rate's own items say; null for other rates.

    """

    value: Share
    low: Share
    high: Share
    items: Count
    asked: Count
    seen: Count
    alone: Limits | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """An estimate and the limits of its interval."""

    value: Share
    low: Share
    high: Share


@dataclass(frozen=True, slots=True)
class SignedEstimate:
    """A figure with an interval, which may be negative."""

    value: float
    low: float
    high: float


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
        return replace(alone, alone=Limits(alone.value, alone.low, alone.high))
    open_items = chosen & ~sample.asked
    known = alone.seen + int((open_items & fact.foretold).sum())
    more = _expected_surprises(fact, sample, open_items & ~fact.foretold, confidence)
    less = _expected_surprises(fact, sample, open_items & fact.foretold, confidence)
    total, low, high = (known + end for end in difference(more, less))
    most = alone.seen + int(open_items.sum())
    return Rate(
        value=total / alone.items,
        low=max(low, alone.seen) / alone.items,
        high=min(high, most) / alone.items,
        items=alone.items,
        asked=alone.asked,
        seen=alone.seen,
        alone=Limits(alone.value, alone.low, alone.high),
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
        shuffled[order] = surprised[np.argsort(kinds + rng.random(len(kinds)))]
        as_uneven += unevenness(shuffled) >= found
    return (1 + as_uneven) / (1 + PERMUTATIONS)


def _expected_surprises(
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
