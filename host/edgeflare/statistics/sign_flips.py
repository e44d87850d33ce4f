"""The exact test of sums whose signs might as well be the others (Fisher's randomization test)."""

from __future__ import annotations

from math import ceil, isqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

LEAST_P: Final = 1e-12
"""The least p: what is less is lost in the rounding of the sums."""

_LEAST_UNITS: Final = 16384
"""Units at least into which all sums together are divided where they are no whole numbers: each is
then rounded by half a unit at most."""

_UNITS_OF_A_SUM: Final = 32
"""Units of a sum of mean size, at least."""

_WHOLE: Final = 1e-9
"""How far a sum is from a whole number by the rounding of floats alone."""


def sign_flip_test(sums: NDArray[np.int64] | NDArray[np.float64]) -> float:
    """Return p, two-sided and exact, of the total of independent sums that are as likely negative.

    It is the share of all choices of their signs by which the total is as far from 0. Where each
    sum is 1 or -1, the test is the sign test, and of right and wrong answers McNemar's exact one.
    What is counted in groups, such as inputs of which each is under many conditions, is summed up
    by group before, so that no group counts as many.

    Args:
        sums: (groups,); those that are 0 do not count, and where all are, p is 1. Where they are no
            whole numbers, such as estimates, p is that of near ones in proportion, and totals count
            as equal that rounding may have parted.

    """
    slack = 0
    if not np.allclose(sums, np.rint(sums), rtol=0.0, atol=_WHOLE):
        count = np.count_nonzero(sums)
        sums = sums * (max(_LEAST_UNITS, _UNITS_OF_A_SUM * count) / np.abs(sums).sum())
        # What all roundings come to at most, and, where they are many, by chance.
        slack = min(ceil(2.0 * np.abs(sums - np.rint(sums)).sum()), 1 + isqrt(count))
    sums = np.rint(sums).astype(np.int64)
    sizes, counts = np.unique(np.abs(sums[sums != 0]), return_counts=True)
    most, total = int((sizes * counts).sum()), max(0, abs(int(sums.sum())) - slack)
    points = 1 << int(2 * most + 1).bit_length()
    # The characteristic function of the total is the product of the cosines of its parts.
    angles = 2.0 * np.pi / points * np.arange(points)
    waves = np.ones(points)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        waves *= np.cos(size * angles) ** count
    chances = np.fft.fft(waves).real / points
    below = float(chances[:total].sum() + chances[points - total + 1 :].sum()) if total else 0.0
    return min(1.0, max(1.0 - below, LEAST_P))
