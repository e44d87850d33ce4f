"""How many of the next items are drawn from each stratum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edgeflare.survey.estimate.strata import Strata

FLOOR = 0.4
"""Share of the draws that does not depend on what was seen: half of it in proportion to the items
of a stratum, half to the root of that. It bounds the weight of every item, and keeps a stratum in
which nothing was seen at first from being left alone."""

PSEUDO = 1.0
"""Surprises, and as many items without, that are added to those seen where a rate is guessed."""


def first_shares(strata: Strata) -> NDArray[np.float64]:
    """Return the share of each stratum while nothing is known: by the root of its items."""
    roots = np.sqrt(strata.sizes)
    return np.asarray(roots / roots.sum())


def next_shares(
    strata: Strata, asked: NDArray[np.int64], surprises: NDArray[np.int64], count: int
) -> NDArray[np.float64]:
    """Return the share of each stratum in the next draws.

    After them the items asked should be in proportion to size times standard deviation (Neyman's
    allocation). The rates behind the deviations are those seen, made to fall with the margin within
    a block, which pools strata that do not differ.

    Args:
        strata: of all items.
        asked: (strata,) items that were asked.
        surprises: (strata,) of those, how many the twin did not foretell.
        count: how many are drawn next.

    Returns:
        (strata,), adding up to 1; 0 where all items were asked.

    """
    sizes = strata.sizes
    left = sizes - asked
    rates = falling_rates(asked, surprises, strata.blocks)
    wanted = _capped(sizes * np.sqrt(rates * (1.0 - rates)), sizes, int(asked.sum()) + count)
    missing = np.maximum(wanted - asked, 0.0)
    roots = np.sqrt(sizes) * (left > 0)
    floor = 0.5 * left / left.sum() + 0.5 * roots / roots.sum()
    if missing.sum() == 0.0:
        return np.asarray(floor)
    shares = (1.0 - FLOOR) * missing / missing.sum() + FLOOR * floor
    shares[left == 0] = 0.0
    return np.asarray(shares / shares.sum())


def falling_rates(
    asked: NDArray[np.int64],
    surprises: NDArray[np.int64],
    blocks: Sequence[tuple[int, ...]],
) -> NDArray[np.float64]:
    """Return a guess at each stratum's rate of surprises that falls with the margin in a block."""
    rates = np.zeros(len(asked))
    for block in blocks:
        pools: list[tuple[float, float, list[int]]] = []
        for stratum in block:
            pools.append((float(surprises[stratum]), float(asked[stratum]), [stratum]))
            while len(pools) > 1 and _rate(pools[-2]) <= _rate(pools[-1]):
                last, before = pools.pop(), pools.pop()
                pools.append((before[0] + last[0], before[1] + last[1], before[2] + last[2]))
        for seen, of, members in pools:
            rates[members] = (seen + PSEUDO) / (of + 2.0 * PSEUDO)
    return rates


def _rate(pool: tuple[float, float, list[int]]) -> float:
    return pool[0] / max(pool[1], 1.0)


def _capped(
    shares: NDArray[np.float64], most: NDArray[np.int64], count: int
) -> NDArray[np.float64]:
    """Divide a count in proportion to shares, nowhere more than there is."""
    divided = np.zeros(len(shares))
    for _ in range(len(shares)):
        free = divided < most
        rest = count - divided.sum()
        if rest < 1.0 or not free.any():
            break
        divided[free] += rest * shares[free] / shares[free].sum()
        divided = np.minimum(divided, most)
    return divided
