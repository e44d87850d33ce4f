"""Textures of ice on a pane, drawn at random; no picture is needed."""

from __future__ import annotations

import math

import cv2
import numpy as np

from edgeflare.conditions.image.gray_levels import Real

FULL = 1.0
"""Pitch for large images: a pixel of the texture for each pixel of the image."""
FINE = 5.0
"""Pitch for small images: ImageNet-C shrinks its pictures of frost to a fifth for CIFAR-10-C."""

# Gray levels of red, green and blue. All are measured on crops of the five pictures of frost that
# ImageNet-C draws from: their mean, how far the means of crops differ, and how far pixels differ
# from the mean of their crop.
MEAN = np.array((143.4, 164.6, 176.5), np.float32)
BETWEEN = np.array((50.5, 35.3, 33.7), np.float32)
WITHIN = np.array((25.9, 24.5, 24.7), np.float32)
CONTRASTS = (0.5, 1.5)
"""Some panes have twice the contrast of others and more; factors of WITHIN, root mean square 1."""

# Side of the cells in pixels of the full texture, and their share of the variance: as differences
# of pixels at these distances grow in the pictures.
PATCHES = ((4.0, 0.11), (8.0, 0.10), (16.0, 0.09), (32.0, 0.08), (64.0, 0.08), (128.0, 0.09))
NEEDLES = 0.45
"""The needles' share of the variance."""
NEEDLE_LENGTH = 9.0
"""Pixels of the full texture."""

_LINEAR_VARIANCE = 4 / 9
"""What interpolating white noise linearly along both axes leaves of its variance, on average."""


def frost_texture(height: int, width: int, pitch: float, rng: np.random.Generator) -> Real:
    """Return a texture of ice: patches of all sizes, and needles at angles of 60 degrees.

    Args:
        height: in pixels.
        width: in pixels.
        pitch: how many pixels of the full texture there are for each pixel, in each direction.
        rng: from which all is drawn.

    Returns:
        Gray levels from 0 to 255, (height, width, 3), in RGB.

    """
    # Uniform with a standard deviation of 1, so that no pane is brighter than white.
    tone = rng.uniform(-math.sqrt(3), math.sqrt(3))
    contrast = rng.uniform(*CONTRASTS) / math.sqrt(1 + (CONTRASTS[1] - CONTRASTS[0]) ** 2 / 12)
    field = _needles(height, width, pitch, rng) * math.sqrt(NEEDLES)
    for side, share in PATCHES:
        field += _patches(height, width, side / pitch, rng) * math.sqrt(share)
    base = MEAN + np.float32(tone) * BETWEEN
    spread = np.float32(contrast) * WITHIN
    return np.asarray(np.clip(base + field[..., np.newaxis] * spread, 0, 255), np.float32)


def _patches(height: int, width: int, side: float, rng: np.random.Generator) -> Real:
    """Return a field of variance 1 on average whose patches have so many pixels a side."""
    if side <= 1:
        return rng.standard_normal((height, width), np.float32)
    rows, columns = math.ceil(height / side) + 2, math.ceil(width / side) + 2
    coarse = rng.standard_normal((rows, columns), np.float32)
    down, right = rng.uniform(0, side, 2)
    places = np.array(((1 / side, 0, right / side), (0, 1 / side, down / side)))
    field = cv2.warpAffine(
        coarse, places, (width, height), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    )
    return np.asarray(field / math.sqrt(_LINEAR_VARIANCE), np.float32)


def _needles(height: int, width: int, pitch: float, rng: np.random.Generator) -> Real:
    """Return a field of variance 1 made of short lines in three directions."""
    turned = rng.uniform(0, math.pi / 3)
    field = np.zeros((height, width), np.float32)
    for direction in range(3):
        line = _line(NEEDLE_LENGTH / pitch, turned + direction * math.pi / 3)
        reach = len(line) // 2
        white = rng.standard_normal((height + 2 * reach, width + 2 * reach), np.float32)
        drawn = cv2.filter2D(white, -1, line)[reach : reach + height, reach : reach + width]
        field += drawn / np.float32(math.sqrt(3 * float((line**2).sum())))
    return field


def _line(length: float, angle: float) -> Real:
    """Return a kernel, odd on both sides, of a line through its middle."""
    reach = math.ceil(length / 2)
    line = np.zeros((2 * reach + 1, 2 * reach + 1), np.float32)
    across, down = math.cos(angle), math.sin(angle)
    for step in np.linspace(-length / 2, length / 2, 4 * reach + 1):
        line[reach + round(step * down), reach + round(step * across)] = 1
    return line
