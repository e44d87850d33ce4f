"""How many items one that was asked stands for, by stratum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.survey.estimate.rate import Sample


@dataclass(frozen=True, slots=True)
class StratumWeights:
    """The strata of a sample; all arrays are (strata,).

    Attributes:
        sizes: int64, items.
        asked: int64, of them, those that were asked.

    """

    sizes: NDArray[np.int64]
    asked: NDArray[np.int64]

    @classmethod
    def of(cls, sample: Sample) -> StratumWeights:
        """Return the strata of a sample."""
        sizes = np.bincount(sample.stratum)
        return cls(sizes, np.bincount(sample.stratum[sample.asked], minlength=len(sizes)))

    @property
    def weight(self) -> NDArray[np.float64]:
        """Items that one that was asked stands for: float64.

        Of a stratum of which nothing was asked, one item that is asked next would stand for all.
        """
        return np.asarray(self.sizes / np.maximum(self.asked, 1))

    @property
    def unasked(self) -> NDArray[np.float64]:
        """The share that was not asked: float64."""
        return np.asarray((self.sizes - self.asked) / np.maximum(self.sizes, 1))
