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
rate wide open. By `SlicedFact.pooled_rate` the slice has in each stratum the surprises that all
items of the stratum have: as if the device surprised as often under every condition, given what the
host foretells and the twin's margin (a synthetic estimate, as for small areas). `pooling_p_value`
tests that. What the host knows for certain is not pooled: where the original is wrong, the device
harms nobody (`Fact.possible`).
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

    Args:
        fact: what was foretold and seen.
        sample: items that were asked.
        chosen: (items,) bool, the items that the rate is about; None for all.
        confidence: confidence of the interval.

    """
    slices = np.zeros(len(sample.asked), np.int64)
    if chosen is not None:
        slices[~chosen] = -1
    return SlicedFact.of(fact, sample, slices, 1).rate(0, confidence)


@dataclass(frozen=True, slots=True)
class SlicedFact:
    """How often a fact was foretold and seen in slices of the items, which have no item in common.

    All items are counted once, however many slices there are.

    Attributes:
        strata: strata that the items were drawn from.
        items: (slices,) int64, items of each.
        foretold: (slices,) int64, of them, those of which it is foretold.
        asked: (slices,) int64, of the items, those that were asked.
        seen: (slices,) int64, of these, those of which it was seen.
        possible: (slices, strata, 2) int64, items of which it may be seen, by whether it is
            foretold: first those of which it is not.
        told: likewise, of these, those that were asked.
        surprises: likewise, of these, those that are otherwise than foretold.
        all_told: (strata, 2) int64, those that were asked, of all items.
        all_surprises: likewise, of these, the surprises.

    """

    strata: StratumWeights
    items: NDArray[np.int64]
    foretold: NDArray[np.int64]
    asked: NDArray[np.int64]
    seen: NDArray[np.int64]
    possible: NDArray[np.int64]
    told: NDArray[np.int64]
    surprises: NDArray[np.int64]
    all_told: NDArray[np.int64]
    all_surprises: NDArray[np.int64]

    @classmethod
    def of(cls, fact: Fact, sample: Sample, slices: NDArray[np.int64], count: int) -> SlicedFact:
        """Count a fact.

        Args:
            fact: what was foretold and seen.
            sample: items that were asked.
            slices: (items,) the slice of each, from 0; -1 for items of none.
            count: how many slices there are.

        """
        strata = StratumWeights.of(sample)
        possible = np.ones(len(slices), bool) if fact.possible is None else fact.possible
        flags = (fact.foretold, possible, sample.asked, fact.seen & sample.asked)
        kinds = sample.stratum
        for flag in flags:
            kinds = 2 * kinds + flag
        of_each = len(strata.sizes) * 2 ** len(flags)
        # What is of no slice is counted before the first one.
        numbers = np.bincount((slices + 1) * of_each + kinds, minlength=(count + 1) * of_each)
        every = numbers.reshape(count + 1, -1, 2, 2, 2, 2)  # slice, stratum, and the flags
        known = every[:, :, :, 1, 1]  # possible, and asked
        surprises = np.stack((known[:, :, 0, 1], known[:, :, 1, 0]), axis=-1)
        told = known.sum(axis=-1)
        each = every[1:]
        return cls(
            strata=strata,
            items=each.sum(axis=(1, 2, 3, 4, 5)),
            foretold=each[:, :, 1].sum(axis=(1, 2, 3, 4)),
            asked=each[:, :, :, :, 1].sum(axis=(1, 2, 3, 4)),
            seen=each[..., 1].sum(axis=(1, 2, 3, 4)),
            possible=each[:, :, :, 1].sum(axis=(3, 4)),
            told=told[1:],
            surprises=surprises[1:],
            all_told=told.sum(axis=0),
            all_surprises=surprises.sum(axis=0),
        )

    def rate(self, at: int, confidence: float) -> Rate:
        """Return the rate of a slice, from the answers to its own items alone.

        The limits of the two sums of surprises are combined by the squares of their distances from
        the estimate (see `difference`).

        Args:
            at: number of the slice.
            confidence: confidence of the interval.

        """
        items, seen = int(self.items[at]), int(self.seen[at])
        if items == 0:
            return Rate(0.0, 0.0, 1.0, 0, 0, 0)
        more, less = (
            count_limits(
                items=self.possible[at, :, foretold],
                asked=self.told[at, :, foretold],
                hits=self.surprises[at, :, foretold],
                drawn=self.strata.asked,
                weight=self.strata.weight,
                unasked=self.strata.unasked,
                confidence=confidence,
            )
            for foretold in (0, 1)
        )
        foretold = float(self.foretold[at])
        total, low, high = (foretold + end for end in difference(more, less))
        most = seen + int((self.possible[at] - self.told[at]).sum())
        estimate = min(max(total, seen), most)
        low, high = max(low, seen), min(high, most)
        return Rate(
            estimate / items, min(low, estimate) / items, max(high, estimate) / items,
            items, int(self.asked[at]), seen,
        )  # fmt: skip

    def pooled_rate(self, at: int, confidence: float) -> Rate:
        """Return the rate of a slice, with the one from its own answers beside it.

        Args:
            at: number of the slice.
            confidence: confidence of both intervals.

        """
        alone = self.rate(at, confidence)
        beside = Limits(alone.value, alone.low, alone.high)
        if alone.items == 0:
            return replace(alone, alone=beside)
        untold = self.possible[at] - self.told[at]
        known = alone.seen + int(untold[:, 1].sum())
        more, less = (
            _expected_surprises(
                untold[:, foretold],
                self.all_told[:, foretold],
                self.all_surprises[:, foretold],
                confidence,
            )
            for foretold in (0, 1)
        )
        total, low, high = (known + end for end in difference(more, less))
        most = alone.seen + int(untold.sum())
        return Rate(
            value=total / alone.items,
            low=max(low, alone.seen) / alone.items,
            high=min(high, most) / alone.items,
            items=alone.items,
            asked=alone.asked,
            seen=alone.seen,
            alone=beside,
        )


def _expected_surprises(
    untold: NDArray[np.int64],
    told: NDArray[np.int64],
    surprises: NDArray[np.int64],
    confidence: float,
) -> CountLimits:
    """Return the surprises among items of one prediction, none of which was asked.

    Args:
        untold: (strata,) these items.
        told: (strata,) items of the same prediction that were asked, of whatever slice.
        surprises: (strata,) of them, the surprises.
        confidence: confidence of the interval.

    """
    count = int(untold.sum())
    if not count:
        return CountLimits(0.0, 0.0, 0.0)
    # Each surprise that was seen stands for so many of the items that were not asked.
    weight = untold / np.maximum(told, 1)
    found = float((weight * surprises).sum())
    spread = 1.0 - (surprises + 0.5) / (told + 1.0)
    # How often a stratum surprises is not known, and given that, how often these items do.
    variance = float(((weight**2 + weight) * surprises * spread).sum())
    heaviest = float(weight.max())
    more = (found + heaviest, variance + heaviest**2 + heaviest)
    low, high = gamma_limits((found, variance), more, confidence)
    # What is bounded is a whole number of items, which may be none where less than one is expected.
    low, high = min(floor(low), found), max(high, found)
    return CountLimits(min(found, count), min(low, count), min(high, count))


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
    items = np.bincount(inputs[chosen], minlength=int(inputs.max()) + 1)
    counts = counts_of_inputs(fact, sample, inputs, chosen)
    shares = (counts / np.maximum(items, 1))[surveyed]
    count = len(surveyed)
    variance = float(shares.var(ddof=1)) / count if count > 1 else 0.0
    spread = found.value * (1.0 - found.value)
    # Where the device did nothing that was foretold, what was not asked varies around a rate of 0.
    known = variance == 0.0 or spread == 0.0
    draws = float(count) if known else min(max(spread / variance, 1.0), float(count))
    low, high = wilson_interval(found.value, draws, confidence)
    return FieldInterval(min(low, found.low), max(high, found.high), draws)


def counts_of_inputs(
    fact: Fact, sample: Sample, inputs: NDArray[np.int64], chosen: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return of how many items of each input a fact is estimated to be so: (inputs,).

    They are whole numbers where all items were asked.

    Args:
        fact: what was foretold and seen.
        sample: items that were asked.
        inputs: (items,) the input of each item, from 0.
        chosen: (items,) bool, the items that count.

    """
    weights = StratumWeights.of(sample).weight[sample.stratum]
    surprise = np.where(fact.foretold, -1.0, 1.0) * (fact.seen != fact.foretold) * sample.asked
    values = np.where(chosen, fact.foretold + weights * surprise, 0.0)
    return np.asarray(np.bincount(inputs, weights=values))


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
    # Of the items asked in a stratum, those that are not chosen have a residual of 0.
    residuals, of = differences - correction, sample.stratum[known]
    sums, squares = (np.bincount(of, values, len(sizes)) for values in (residuals, residuals**2))
    partly = touched[asked[touched] < sizes[touched]]
    size, drawn = sizes[partly], asked[partly]
    within = (squares[partly] - sums[partly] ** 2 / drawn) / (drawn - 1)
    variance = float((size * (size - drawn) / drawn * np.maximum(within, 0.0)).sum())
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
