"""Parameters of a condition at each severity, for small images and for large ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

from edgeflare.conditions.image.gray_levels import Image

SMALL_SIDE = 64
"""Pixels. Hendrycks and Dietterich give parameters for 32 pixels (CIFAR-10-C) and for 224
(ImageNet-C); an image whose smaller side is at most this is treated as one of 32."""

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class SeverityParameters:
    """Parameters of a condition.

    Attributes:
        small: of images whose smaller side is at most `SMALL_SIDE`; a row for each whole severity
            from 1 to 5, a column for each parameter.
        large: of larger images, likewise.

    """

    small: Rows
    large: Rows

    def at(self, image: Image, severity: float) -> tuple[float, ...]:
        """Return the parameters for an image, interpolated between whole severities.

        Args:
            image: HWC; only its size is looked at.
            severity: from 1 to 5.

        """
        rows = self.small if min(image.shape[:2]) <= SMALL_SIDE else self.large
        below = min(int(severity), len(rows) - 1)
        share = severity - below
        pairs = zip(rows[below - 1], rows[below], strict=True)
        return tuple(low * (1 - share) + high * share for low, high in pairs)


def one_parameter(small: tuple[float, ...], large: tuple[float, ...]) -> SeverityParameters:
    """Return the parameters of a condition that has one, given for each whole severity."""
    return SeverityParameters(tuple((one,) for one in small), tuple((one,) for one in large))


def whole(parameter: float) -> int:
    """Round a parameter that has to be whole; halves go up."""
    return math.floor(parameter + 0.5)
