"""Gaussian smoothing with the truncation and the borders that ImageNet-C's library has."""

from __future__ import annotations

from typing import Any, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

Smoothed = TypeVar("Smoothed", bound=NDArray[np.floating[Any]])

Taps = NDArray[np.float64]


def smoothed(
    values: Smoothed, sigma: float, *, truncate: float = 4.0, border: int = cv2.BORDER_REPLICATE
) -> Smoothed:
    """Return values convolved with a Gaussian along both axes.

    Args:
        values: (height, width) or (height, width, channels), float32 or float64.
        sigma: of the Gaussian, in pixels.
        truncate: how many sigmas from its middle the Gaussian ends.
        border: what OpenCV takes for values outside of the image: its border's, or, with
            `cv2.BORDER_REFLECT`, the reflected image.

    """
    height, width = values.shape[:2]
    taps = _taps(sigma, truncate)
    across, down = taps, taps
    if border == cv2.BORDER_REFLECT:
        across, down = _folded(taps, width), _folded(taps, height)
    result = cv2.sepFilter2D(values, -1, across, down, borderType=border)
    return result.reshape(values.shape)  # type: ignore[return-value]


def smoothed_in_pairs(values: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    """Return values smoothed as by `smoothed` with its defaults, equal to SciPy's in every bit.

    Slower. It is for values whose fractions are cut off more than once: there a sum of 254.99…
    instead of 255 makes a difference that grows.

    Args:
        values: (height, width, channels).
        sigma: of the Gaussian, in pixels.

    """
    taps = _taps(sigma, 4.0)
    radius = len(taps) // 2
    if radius == 0:
        return values
    for axis in (0, 1):
        side = values.shape[axis]
        around = [(radius, radius) if each == axis else (0, 0) for each in (0, 1, 2)]
        padded = np.moveaxis(np.pad(values, around, mode="edge"), axis, 0)
        # SciPy adds pairs of the same weight to the middle, the outermost first.
        total = padded[radius : radius + side] * taps[radius]
        for index in range(radius):
            pair = padded[index : index + side] + padded[2 * radius - index :][:side]
            total += pair * taps[index]
        values = np.moveaxis(total, 0, axis)
    return values


def _taps(sigma: float, truncate: float) -> Taps:
    radius = int(truncate * sigma + 0.5)
    if radius == 0:
        return np.ones(1)
    taps = np.exp(-0.5 / sigma**2 * np.arange(-radius, radius + 1) ** 2)
    return np.asarray(taps / taps.sum())


def _folded(taps: Taps, side: int) -> Taps:
    """Shorten a kernel that is longer than the period of a reflected image, which is two sides."""
    radius = len(taps) // 2
    if radius <= side:
        return taps
    period = 2 * side
    places = (np.arange(-radius, radius + 1) + side) % period
    folded = np.bincount(places, taps, minlength=period)
    # The first place is one end of the period as well as the other.
    return np.concatenate(([folded[0] / 2], folded[1:], [folded[0] / 2]))
