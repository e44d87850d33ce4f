"""Smearing along a line, as ImageMagick's motion blur does it."""

from __future__ import annotations

import math

import cv2
import numpy as np

from edgeflare.conditions.image.severity_parameters import Image, Real, gray_levels

LEAST_WEIGHT = 1e-6
"""Of a pixel that still counts; 41 lighter ones together are less than 1/90 of a gray level."""


def smeared(image: Image, radius: float, sigma: float, angle: float) -> Image:
    """Return an image every pixel of which is a mean of those along a line that begins there.

    The line has 2 ceil(radius) + 1 pixels, whose weights fall as one half of a Gaussian does.
    Outside of the image its border continues.

    Args:
        image: HWC, uint8.
        radius: half the length of the line, in pixels.
        sigma: of the Gaussian, in pixels.
        angle: of the line, in degrees; with 0 it leads to the right, with 90 downwards.

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
