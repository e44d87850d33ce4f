"""A test of whether a mean lies below a limit, that may be looked at after every draw.

Two bets are made against each draw: one wins where the mean is below the limit, one where it is
above. Whoever bets against the truth multiplies a stake by 1 / alpha with a probability of at most
alpha, however often one looks (Ville's inequality; Waudby-Smith and Ramdas 2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Final

import numpy as np
from numpy.typing import NDArray

LARGEST_STAKE: Final = 0.75
"""Share of the capital that one draw may lose at most."""


@dataclass(frozen=True, slots=True)
class LimitEvidence:
    """How much the draws say.

    Attributes:
        below: natural logarithm of the largest capital of who bet that the mean is below the limit.
        above: the same of who bet that it is above.

    """

    below: float
    above: float

    def decided(self, confidence: float) -> bool | None:
        """Return whether the mean is below the limit; None where the draws do not decide it.

        Args:
            confidence: 1 − the probability with which a wrong answer is ever given.

        """
        needed = -log(1.0 - confidence)
        if self.below < needed and self.above < needed:
            return None
        return self.below >= self.above


@dataclass(frozen=True, slots=True)
class BoundedEstimates:
    """Unbiased estimates of a mean, each within limits that were known before it: (draws,) each.

    Attributes:
        values: the estimates.
        least, most: the limits that they could have had, given what was drawn before.

    """

    values: NDArray[np.float64]
    least: NDArray[np.float64]
    most: NDArray[np.float64]


def evidence(found: BoundedEstimates, limit: float) -> LimitEvidence:
    """Return what estimates say of their mean and a limit."""
    return LimitEvidence(_largest_capital(found, limit, 1.0), _largest_capital(found, limit, -1.0))


def _largest_capital(found: BoundedEstimates, limit: float, sign: float) -> float:
    """Return the logarithm of the largest capital of who bets that estimates are below a limit.

    With the sign −1 the bet is that they are above it. Each stake depends on the draws before it
    alone: it is the mean gain over the mean square, which is about the stake of fastest growth.
    """
    gains = sign * (limit - found.values)
    worst = -np.minimum(sign * (limit - found.least), sign * (limit - found.most))
    counts = np.arange(1.0, len(gains) + 1.0)
    means = sums_before(gains) / counts
    squares = (0.25 + sums_before(gains**2)) / counts
    most = np.where(worst > 0.0, LARGEST_STAKE / np.maximum(worst, 1e-12), np.inf)
    stakes = np.clip(means / squares, 0.0, most)
    capital = np.cumsum(np.log1p(stakes * gains))
    return float(capital.max(initial=0.0))


def sums_before(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each place the sum of all values before it."""
    return np.asarray(np.cumsum(values, axis=0) - values)
