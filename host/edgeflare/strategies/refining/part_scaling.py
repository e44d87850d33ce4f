"""The shortest change of an input that is made of the parts of another change.

The cosines of a gradient's estimate reach only the lowest frequencies of a long input, 128 Hz of a
second of sound, and what a mutation changed lies mostly above. So the change that was found is cut
into parts along the input, and each is kept, shortened or left out by what it does to the margin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from edgeflare.core.input_space import InputSpace, Real

LONG: Final = 1024
"""Least number of cells along the only axis of an input whose change is cut into parts."""

MOST: Final = 1.5
"""Largest scale of a part: its effect on the margin is known near 1 alone."""

_NEGLIGIBLE: Final = 1e-4
"""Share of a change's energy below which a part is not worth a query."""

_HALVINGS: Final = 60
"""Bisections of the multiplier: to the precision of float64."""


def is_long(space: InputSpace, shape: tuple[int, ...]) -> bool:
    """Whether inputs of a shape have a single axis of cells, of at least `LONG`."""
    cells = space.cells(shape)
    return len(cells) == 1 and cells[0] >= LONG


def parts_of(change: Real, count: int) -> list[Real]:
    """Return parts of a change along its first axis, each in its shape and zero elsewhere.

    Args:
        change: the change of an input, in levels.
        count: how many parts of equal length it is cut into; those with hardly any of the change
            are left out.

    """
    parts = []
    least = _NEGLIGIBLE * float(np.square(change).sum())
    for places in np.array_split(np.arange(len(change)), count):
        if float(np.square(change[places]).sum()) > least:
            part = np.zeros_like(change)
            part[places] = change[places]
            parts.append(part)
    return parts


def shortest(parts: Sequence[Real], gains: Real, wanted: float) -> Real:
    """Return the shortest sum of scaled parts whose gains add up to what is wanted.

    The parts do not overlap, so the scale of each is proportional to its gain divided by its
    energy, up to `MOST`; parts without a gain are left out.

    Args:
        parts: the parts, in levels.
        gains: what each adds to the margin, in full, (parts,).
        wanted: the sum of gains; where they do not reach it, all that help are at `MOST`.

    """
    energies = np.array([float(np.square(part).sum()) for part in parts])
    worth = np.maximum(gains, 0.0) / energies
    low, high = 0.0, MOST / float(worth[worth > 0].min(initial=np.inf)) if worth.any() else 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if float((np.minimum(middle * worth, MOST) * gains).sum()) < wanted:
            low = middle
        else:
            high = middle
    scales = np.minimum(high * worth, MOST)
    return np.asarray(sum(scale * part for scale, part in zip(scales, parts, strict=True)))
