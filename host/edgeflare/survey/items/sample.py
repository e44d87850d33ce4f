"""What is asked about items, and which of them the device was asked about."""

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
