"""The interval of a rate in the field, of which the surveyed inputs are themselves a sample.

The interval of `rate_interval` is about the very inputs that were surveyed. Where these were drawn
at random from the field, other inputs would have come out otherwise. All items of an input come
from one draw, so inputs count, not items: the variance of the estimate is that between inputs, and
Wilson's interval is that of as many draws as have this variance (Korn and Graubard 1998).
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgeflare.record.json_types import Share
from edgeflare.survey.estimate.rate import Fact, Rate, Sample
from edgeflare.survey.estimate.strata import StratumWeights


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
        sample: which items were asked.
        inputs: (items,) the input of each item, from 0.
        chosen: (items,) bool, the items that the rate is about, as many of each input.
        confidence: of the interval.

    """
    surveyed = np.unique(inputs[chosen])
    shares = _shares(fact, sample, inputs, chosen)[surveyed]
    count = len(surveyed)
    variance = float(shares.var(ddof=1)) / count if count > 1 else 0.0
    spread = found.estimate * (1.0 - found.estimate)
    draws = float(count) if variance == 0.0 else min(spread / variance, float(count))
    draws = max(draws, 1.0)
    deviate = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    middle = (found.estimate * draws + deviate**2 / 2.0) / (draws + deviate**2)
    half = deviate / (draws + deviate**2) * (spread * draws + deviate**2 / 4.0) ** 0.5
    return FieldInterval(min(middle - half, found.low), max(middle + half, found.high), draws)


def _shares(
    fact: Fact, sample: Sample, inputs: NDArray[np.int64], chosen: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the estimated share of each input's items: (inputs,)."""
    weights = StratumWeights.of(sample).weight[sample.stratum]
    surprise = np.where(fact.foretold, -1.0, 1.0) * (fact.seen != fact.foretold) * sample.asked
    values = np.where(chosen, fact.foretold + weights * surprise, 0.0)
    items = np.bincount(inputs[chosen], minlength=int(inputs.max()) + 1)
    return np.asarray(np.bincount(inputs, weights=values) / np.maximum(items, 1))
