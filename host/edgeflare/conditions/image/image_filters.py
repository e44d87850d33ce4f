"""Filters of images as the libraries of ImageNet-C compute them: Gaussian, smear and zoom."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.conditions.image.severity_parameters import Image, Real, gray_levels

Smoothed = TypeVar("Smoothed", bound=NDArray[np.floating[Any]])

Taps = NDArray[np.float64]


def smoothed(
    values: Smoothed, sigma: float, *, truncate: float = 4.0, border: int = cv2.BORDER_REPLICATE
) -> Smoothed:
    """Return values convolved with a Gaussian along both axes.

    Args:
        values: (height, width) or (height, width, channels), float32 or float64.
        sigma: standard deviation of the Gaussian, in pixels.
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
        sigma: standard deviation of the Gaussian, in pixels.

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


LEAST_WEIGHT = 1e-6
"""Least weight of a pixel that counts; 41 lighter ones together are less than 1/90 of a gray
level."""


def smeared(image: Image, radius: float, sigma: float, angle: float) -> Image:
    """Return an image every pixel of which is a mean of those along a line that begins there.

    The line has 2 ceil(radius) + 1 pixels, whose weights fall as one half of a Gaussian does.
    Outside of the image its border continues.

    Args:
        image: HWC, uint8.
        radius: half the length of the line, in pixels.
        sigma: standard deviation of the Gaussian, in pixels.
        angle: angle of the line, in degrees; with 0 it leads to the right, with 90 downwards.

    """
    length = 2 * math.ceil(radius) + 1
    weights = np.exp(-0.5 * (np.arange(length) / sigma) ** 2)
    weights /= weights.sum()
    weights = weights[weights >= LEAST_WEIGHT]
    return gray_levels(_weighted(image, weights.tolist(), angle))


def _weighted(image: Image, weights: list[float], angle: float) -> Real:
    height, width = image.shape[:2]
    across, down = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    steps = [
        (math.ceil(index * across - 0.5), math.ceil(index * down - 0.5))
        for index in range(len(weights))
    ]
    reach = len(weights)
    padded = cv2.copyMakeBorder(image, reach, reach, reach, reach, cv2.BORDER_REPLICATE)
    values = padded.reshape(height + 2 * reach, width + 2 * reach, -1).astype(np.float32)
    total = np.zeros(image.shape, np.float32)
    for weight, (x, y) in zip(weights, steps, strict=True):
        left, top = reach + x, reach + y
        total += np.float32(weight) * values[top : top + height, left : left + width]
    return total


def zoomed(values: Real, factor: float) -> Real:
    """Return the centre of an image, enlarged to the size of the image.

    The centre is cut out at whole pixels, enlarged so that its corner pixels stay corner pixels,
    and trimmed.

    Args:
        values: (height, width, channels).
        factor: enlargement, at least 1.

    """
    above, share = _grid(values.shape[0], factor)
    upper = values[above]
    below = values[np.minimum(above + 1, len(values) - 1)]
    rows = upper + (below - upper) * share[:, np.newaxis, np.newaxis]
    before, share = _grid(values.shape[1], factor)
    left = rows[:, before]
    right = rows[:, np.minimum(before + 1, rows.shape[1] - 1)]
    return np.asarray(left + (right - left) * share[:, np.newaxis], np.float32)


@lru_cache(maxsize=256)
def _grid(side: int, factor: float) -> tuple[NDArray[np.intp], Real]:
    """Return the pixel before each place of a zoomed side, and the share of the pixel after it."""
    crop = math.ceil(side / factor)
    if crop == 1:  # of one pixel there is no other to interpolate with
        return np.full(side, (side - 1) // 2), np.zeros(side, np.float32)
    enlarged = round(crop * factor)
    places = (np.arange(side) + (enlarged - side) // 2) * ((crop - 1) / (enlarged - 1))
    before = np.minimum(places.astype(np.intp), crop - 2)
    return before + (side - crop) // 2, (places - before).astype(np.float32)
