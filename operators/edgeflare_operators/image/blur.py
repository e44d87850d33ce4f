"""Blurs with a window of random size. A window of one leaves the image as it is."""

from __future__ import annotations

import cv2
import numpy as np

from edgeflare_operators.operator_registry import Image, Sample, operator

AVERAGE_SIDES = (1, 2, 3, 4, 5)
ODD_SIDES = (1, 3, 5, 7)
"""Sides of the window, in pixels, each as likely; Gaussian and median windows need odd ones."""


@operator("average-blur")
def average_blur(image: Image, rng: np.random.Generator) -> Image:
    """Replace every pixel by the mean of the window around it."""
    side = _one_of(AVERAGE_SIDES, rng)
    return _like(image, cv2.blur(image, (side, side)))


@operator("gaussian-blur")
def gaussian_blur(image: Image, rng: np.random.Generator) -> Image:
    """Replace every pixel by the Gaussian mean of the window around it.

    OpenCV derives the deviation from the side: 0.3 ((side - 1) / 2 - 1) + 0.8 pixels.
    """
    side = _one_of(ODD_SIDES, rng)
    return _like(image, cv2.GaussianBlur(image, (side, side), 0))


@operator("median-blur")
def median_blur(image: Image, rng: np.random.Generator) -> Image:
    """Replace every entry by the median of its channel in the window around it."""
    return _like(image, cv2.medianBlur(image, _one_of(ODD_SIDES, rng)))


def _one_of(sides: tuple[int, ...], rng: np.random.Generator) -> int:
    return sides[rng.integers(len(sides))]


def _like(image: Image, blurred: Sample) -> Image:
    """Give back the axis that OpenCV drops from images of one channel."""
    return blurred.reshape(image.shape).astype(np.uint8, copy=False)
