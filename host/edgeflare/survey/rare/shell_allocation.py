"""How many points of each shell the device is asked about."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

INSURANCE = 0.25
"""Share of the queries in proportion to the weight of a shell, whatever was seen: it bounds what
one surprise far from the event may stand for."""

DECAY = 0.1
"""What is guessed for a shell without surprises: at most so many times the rate of surprises of the
next one inwards. It steers queries and enters no estimate."""


def shell_shares(
    weight: NDArray[np.float64],
    asked: NDArray[np.int64],
    surprises: NDArray[np.int64],
    foretold: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return the share of each shell in the queries.

    Beside the insurance they are in proportion to weight times standard deviation of what the host
    does not foretell (Neyman's allocation).

    Args:
        weight: (shells,) the probability of each; the outermost is the first.
        asked: (shells,) points that were asked so far.
        surprises: (shells,) of those, how many the host did not foretell.
        foretold: (shells,) the host foretells the event in all of the shell.

    Returns:
        (shells,), adding up to 1.

    """
    rates = guessed_rates(asked, surprises, foretold)
    wanted = weight * np.sqrt(rates * (1.0 - rates))
    if wanted.sum() == 0.0:
        wanted = weight
    return np.asarray(INSURANCE * weight / weight.sum() + (1.0 - INSURANCE) * wanted / wanted.sum())


def guessed_rates(
    asked: NDArray[np.int64], surprises: NDArray[np.int64], foretold: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return a guess at each shell's rate of surprises: (shells,), between 0 and 1."""
    rates = (surprises + 0.5) / (asked + 1.0)
    inward = [int(one) for one in np.flatnonzero(~foretold)]
    for shell, inner in zip(inward[-2::-1], inward[:0:-1], strict=True):
        if surprises[shell] == 0:
            rates[shell] = min(rates[shell], DECAY * rates[inner])
    return np.asarray(rates)
