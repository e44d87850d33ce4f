"""A fractal field for fog, by the diamond-square algorithm (Fournier, Fussell, Carpenter 1982)."""

from __future__ import annotations

import numpy as np

from edgeflare.conditions.image.gray_levels import Real

FIRST_DISPLACEMENT = 100.0
"""Displacements of ImageNet-C are its square at the coarsest grid, in units that do not matter."""


def plasma_side(height: int, width: int) -> int:
    """Return the side of the smallest field that covers an image: a power of two."""
    return 1 << (max(height, width, 2) - 1).bit_length()


def plasma(uniform: Real, decay: float) -> Real:
    """Return a periodic field, (side, side), from 0 to 1.

    Each grid is refined by points in its middle: first those of squares, then those of diamonds.
    A point is the mean of the four around it, displaced at random.

    Args:
        uniform: side² - 1 numbers, uniform in [-1, 1), where `side` is a power of two.
        decay: by its square displacements shrink where the grid gets twice as fine.

    """
    side = round((len(uniform) + 1) ** 0.5)
    field = np.zeros((side, side), np.float64)
    displacement = FIRST_DISPLACEMENT
    step, used = side, 0
    while step >= 2:
        half, count = step // 2, side // step
        fresh = uniform[used : used + 3 * count**2].reshape(3, count, count) * displacement**2
        used += 3 * count**2
        corners = field[::step, ::step]
        rows = corners + np.roll(corners, -1, axis=0)
        middles = (rows + np.roll(rows, -1, axis=1)) / 4 + fresh[0]
        field[half::step, half::step] = middles
        across = corners + np.roll(corners, -1, axis=1)
        field[::step, half::step] = (middles + np.roll(middles, 1, axis=0) + across) / 4 + fresh[1]
        down = corners + np.roll(corners, -1, axis=0)
        field[half::step, ::step] = (middles + np.roll(middles, 1, axis=1) + down) / 4 + fresh[2]
        step = half
        displacement /= decay
    field -= field.min()
    return np.asarray(field / field.max(), np.float32)
