"""Entries set to white or black. In DFlare's published code, not in its paper's Table 3."""

from __future__ import annotations

import math

import numpy as np

from edgeflare_operators.operator_registry import Image, operator

AMOUNT = 0.004
"""The share of entries that is drawn, half of it salt (255), half pepper (0)."""


@operator("salt-and-pepper")
def salt_and_pepper(image: Image, rng: np.random.Generator) -> Image:
    """Set ceil(AMOUNT / 2 of the entries) to 255, then as many to 0.

    They are drawn one axis at a time, with replacement.
    """
    mutant = np.array(image)
    count = math.ceil(AMOUNT * image.size / 2)
    rows, columns, channels = (rng.integers(length, size=2 * count) for length in image.shape)
    mutant[rows[:count], columns[:count], channels[:count]] = 255
    mutant[rows[count:], columns[count:], channels[count:]] = 0
    return mutant
