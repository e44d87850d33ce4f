"""A rate over many items, of which the device was asked about some."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot

import numpy as np
from numpy.typing import NDArray

from edgeflare.record.json_types import Count, Share


@dataclass(frozen=True, slots=True)
class Fact:
    """A question with yes or no about each item, that only the device can answer.

    Attributes:
        foretold: (items,) bool, what the host's arms say.
        seen: (items,) bool, what the device says; where it was not asked the value means nothing.

    """

    foretold: NDArray[np.bool_]
    seen: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Sample:
    """Which items the device was asked about.

    Attributes:
        stratum: (items,) int64; the items asked in a stratum are a simple random sample of it.
        asked: (items,) bool.

    """

    stratum: NDArray[np.int64]
    asked: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate, with an interval.

    Attributes:
        estimate, low, high: from 0 to 1.
        items: number of items that the rate is about.
        asked: items among them that the device was asked about.
        seen: items asked that the device said yes to.
        alone: what the answers to a pooled rate's own items say; null for other rates.

    """

    estimate: Share
    low: Share
    high: Share
    items: Count
    asked: Count
    seen: Count
    alone: Limits | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """An estimate and the limits of its interval."""

    estimate: Share
    low: Share
    high: Share


def difference(one: Rate, other: Rate) -> tuple[float, float, float]:
    """Return one rate less another: estimate, lower and upper limit.

    The limits of both are combined by the squares of their distances from the estimates (MOVER, Zou
    and Donner 2008). The rates have to be of different items.
    """
    estimate = one.estimate - other.estimate
    below = hypot(one.estimate - one.low, other.high - other.estimate)
    above = hypot(one.high - one.estimate, other.estimate - other.low)
    return estimate, estimate - below, estimate + above


@dataclass(frozen=True, slots=True)
class SignedEstimate:
    """A figure with an interval, which may be negative."""

    estimate: float
    low: float
    high: float


def simultaneous(confidence: float, intervals: int) -> float:
    """Return the confidence of each of several intervals, so that all of them hold together.

    After Šidák, "Rectangular confidence regions for the means of multivariate normal
    distributions", JASA 62 (1967): for two-sided intervals it holds however the estimates depend on
    one another.

    Args:
        confidence: confidence with which all of them are to hold.
        intervals: how many there are.

    """
    return float(confidence ** (1.0 / max(1, intervals)))
