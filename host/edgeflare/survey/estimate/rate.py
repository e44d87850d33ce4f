"""A rate over many items, of which the device was asked about some."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
        items: that it is about.
        asked: of them, how many the device was asked about.
        seen: of those asked, how many it said yes to.
        alone: of a slice whose estimate and limits are from the answers to all items, those from
            the answers to its own; None elsewhere.

    """

    estimate: float
    low: float
    high: float
    items: int
    asked: int
    seen: int
    alone: Limits | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """An estimate and the limits of its interval."""

    estimate: float
    low: float
    high: float
