"""Images of 8 bits from real gray levels, and changes that leave transparency alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]
"""(height, width, channels), with 1, 3 or 4 channels: gray, RGB, or RGB and transparency."""

Real = NDArray[np.float32]
"""The same in real gray levels, from 0 to 255, without transparency."""

SLACK = 1e-3
"""Gray levels. What falls short of a whole gray level by less is taken as a rounding error."""

LUMINANCE = np.array((0.299, 0.587, 0.114), np.float32)
"""Shares of red, green and blue, as in ITU-R BT.601."""


def gray_levels(real: NDArray[np.floating[Any]]) -> Image:
    """Clip real gray levels to 0 ... 255 and cut off their fractions, as ImageNet-C does."""
    return np.clip(real + SLACK, 0, 255).astype(np.uint8)


def on_colours(image: Image, change: Callable[[Image], Image]) -> Image:
    """Return a changed image whose transparency, if it has any, is as it was.

    Args:
        image: HWC, with 1, 3 or 4 channels.
        change: from an image of 1 or 3 channels to one of the same shape.

    """
    if image.shape[2] != 4:
        return change(np.ascontiguousarray(image))
    changed = change(np.ascontiguousarray(image[..., :3]))
    return np.concatenate((changed, image[..., 3:]), axis=2)


def as_channels(rgb: NDArray[np.float32], channels: int) -> NDArray[np.float32]:
    """Return colours, (..., 3), for images of so many channels: for gray ones, their luminance."""
    return (rgb @ LUMINANCE)[..., np.newaxis] if channels == 1 else rgb
