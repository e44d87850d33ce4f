"""Operators on images: HWC, uint8, any size, 1, 3 or 4 channels.

OpenCV's threads are left as they are, since the setting is the whole process's and hardly matters:
up to 96 pixels a side no filter here is faster with two threads than with one, at 224 only the
largest Gaussian is.
"""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare_operators.operator_registry import Image, Sample, operator

Real = NDArray[np.float64]

_AVERAGE_SIDES = (1, 2, 3, 4, 5)
_ODD_SIDES = (1, 3, 5, 7)
"""Sides of the window, in pixels, each as likely; Gaussian and median windows need odd ones."""

SIGMA = math.sqrt(0.1)
"""Standard deviation of the Gaussian noise, in gray levels."""

_MOST_CHANGED = 9
"""The most entries that change; their number is drawn uniformly from 0 to this."""

_SALT_AND_PEPPER = 0.004
"""The share of entries that is drawn, half of it salt (255), half pepper (0)."""


@operator("average-blur")
def average_blur(image: Image, rng: np.random.Generator) -> Image:
    """Replace every pixel by the mean of the window around it."""
    side = _one_of(_AVERAGE_SIDES, rng)
    return _like(image, cv2.blur(image, (side, side)))


@operator("gaussian-blur")
def gaussian_blur(image: Image, rng: np.random.Generator) -> Image:
    """Replace every pixel by the Gaussian mean of the window around it.

    OpenCV derives the deviation from the side: 0.3 ((side - 1) / 2 - 1) + 0.8 pixels.
    """
    side = _one_of(_ODD_SIDES, rng)
    return _like(image, cv2.GaussianBlur(image, (side, side), 0))


@operator("median-blur")
def median_blur(image: Image, rng: np.random.Generator) -> Image:
    """Replace every entry by the median of its channel in the window around it."""
    return _like(image, cv2.medianBlur(image, _one_of(_ODD_SIDES, rng)))


def _one_of(sides: tuple[int, ...], rng: np.random.Generator) -> int:
    return sides[rng.integers(len(sides))]


def _like(image: Image, blurred: Sample) -> Image:
    """Give back the axis that OpenCV drops from images of one channel."""
    return blurred.reshape(image.shape).astype(np.uint8, copy=False)


@operator("gaussian-noise")
def gaussian_noise(image: Image, rng: np.random.Generator) -> Image:
    """Add Gaussian noise of `SIGMA` gray levels to every entry."""
    return clipped(with_gaussian_noise(image, rng))


@operator("multiplicative-noise")
def multiplicative_noise(image: Image, rng: np.random.Generator) -> Image:
    """Add to every entry a random share of itself; see `with_multiplicative_noise`."""
    return clipped(with_multiplicative_noise(image, rng))


def with_gaussian_noise(image: Image, rng: np.random.Generator) -> Real:
    """Return x + N(0, SIGMA) for every entry x, as it falls: unrounded, unclipped."""
    noise = rng.normal(0.0, SIGMA, image.shape)
    noise += image
    return noise


def with_multiplicative_noise(image: Image, rng: np.random.Generator) -> Real:
    """Return x + x n for every entry x, as it falls.

    n is normal, its mean drawn from U(-0.5, 0.5) and its variance from U(0, 0.05) for each image.
    """
    mean = rng.uniform(-0.5, 0.5)
    sigma = math.sqrt(rng.uniform(0.0, 0.05))
    noise = rng.normal(mean, sigma, image.shape)
    noise *= image
    noise += image
    return noise


def clipped(real: Real) -> Image:
    """Round to the nearest gray level and clip to 0 ... 255; `real` is changed."""
    np.rint(real, out=real)
    np.maximum(real, 0.0, out=real)
    np.minimum(real, 255.0, out=real)
    return real.astype(np.uint8)


@operator("pixel-change")
def pixel_change(image: Image, rng: np.random.Generator) -> Image:
    """Set a few entries (one channel of one pixel each) to values drawn from 0 ... 255.

    The entries are drawn with replacement, and none may be drawn: the mutant can equal its input.
    """
    mutant = np.array(image, order="C")
    count = rng.integers(_MOST_CHANGED + 1)
    entries = mutant.reshape(-1)
    entries[rng.integers(mutant.size, size=count)] = rng.integers(256, size=count)
    return mutant


@operator("salt-and-pepper")
def salt_and_pepper(image: Image, rng: np.random.Generator) -> Image:
    """Set half of the share of entries, rounded up, to 255, then as many to 0.

    They are drawn one axis at a time, with replacement.
    """
    mutant = np.array(image)
    count = math.ceil(_SALT_AND_PEPPER * image.size / 2)
    rows, columns, channels = (rng.integers(length, size=2 * count) for length in image.shape)
    mutant[rows[:count], columns[:count], channels[:count]] = 255
    mutant[rows[count:], columns[count:], channels[count:]] = 0
    return mutant
