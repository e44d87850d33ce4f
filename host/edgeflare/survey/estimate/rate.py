"""A rate over many items, of which the device was asked about some."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class SignedEstimate:
    """A figure with an interval, which may be negative."""

    estimate: float
    low: float
    high: float
