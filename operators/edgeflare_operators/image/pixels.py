"""Single entries set to random values."""

from __future__ import annotations

import numpy as np

from edgeflare_operators.operator_registry import Image, operator

MOST = 9
"""At most so many entries change; the number is drawn uniformly from 0 ... MOST."""


@operator("pixel-change")
def pixel_change(image: Image, rng: np.random.Generator) -> Image:
    """Set a few entries (one channel of one pixel each) to values drawn from 0 ... 255.

    The entries are drawn with replacement, and none may be drawn: the mutant can equal its input.
    """
    mutant = np.array(image)
    count = rng.integers(MOST + 1)
    mutant.flat[rng.integers(mutant.size, size=count)] = rng.integers(256, size=count)
    return mutant
