"""Parameters of a condition at each severity, for small images and for large ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]
"""(height, width, channels), with 1, 3 or 4 channels: gray, RGB, or RGB and transparency."""

Real = NDArray[np.float32]
"""Image in real gray levels, from 0 to 255: (height, width, channels), without transparency."""

_SLACK = 1e-3
"""Gray levels. What falls short of a whole gray level by less is taken as a rounding error."""

LUMINANCE = np.array((0.299, 0.587, 0.114), np.float32)
"""Shares of red, green and blue, as in ITU-R BT.601."""


SMALL_SIDE = 64
"""Pixels. Hendrycks and Dietterich give parameters for 32 pixels (CIFAR-10-C) and for 224
(ImageNet-C); an image whose smaller side is at most this is treated as one of 32."""

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class SeverityParameters:
    """Parameters of a condition.

    Attributes:
        small: parameters for images whose smaller side is at most `SMALL_SIDE`; a row for each
            whole severity from 1 to 5, a column for each parameter.
        large: parameters for larger images, likewise.

    """

    small: Rows
    large: Rows

    def at(self, image: Image, severity: float) -> tuple[float, ...]:
        """Return the parameters for an image, interpolated between whole severities.

        Args:
            image: HWC; only its size is looked at.
            severity: severity from 1 to 5.

        """
        rows = self.small if min(image.shape[:2]) <= SMALL_SIDE else self.large
        below = min(int(severity), len(rows) - 1)
        share = severity - below
        pairs = zip(rows[below - 1], rows[below], strict=True)
        return tuple(low * (1 - share) + high * share for low, high in pairs)


def one_parameter(small: tuple[float, ...], large: tuple[float, ...]) -> SeverityParameters:
    """Return the parameters of a condition that has one, given for each whole severity."""
    return SeverityParameters(
        tuple((number,) for number in small), tuple((number,) for number in large)
    )


def whole(parameter: float) -> int:
    """Round a parameter that has to be whole; halves go up."""
    return math.floor(parameter + 0.5)


def gray_levels(real: NDArray[np.floating[Any]]) -> Image:
    """Clip real gray levels to 0 ... 255 and cut off their fractions, as ImageNet-C does."""
    return np.clip(real + _SLACK, 0, 255).astype(np.uint8)


def on_colours(image: Image, change: Callable[[Image], Image]) -> Image:
    """Return a changed image whose transparency, if it has any, is as it was.

    Args:
        image: HWC, with 1, 3 or 4 channels.
        change: makes of an image of 1 or 3 channels one of the same shape.

    """
    if image.shape[2] != 4:
        return change(np.ascontiguousarray(image))
    changed = change(np.ascontiguousarray(image[..., :3]))
    return np.concatenate((changed, image[..., 3:]), axis=2)


def as_channels(rgb: NDArray[np.float32], channels: int) -> NDArray[np.float32]:
    """Return colours, (..., 3), for images of so many channels: for gray ones, their luminance."""
    return (rgb @ LUMINANCE)[..., np.newaxis] if channels == 1 else rgb
