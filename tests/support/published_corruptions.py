"""What the published code of ImageNet-C made of small images, with the draws that it was given.

In `tests/conditions/image/recorded`, `published_small.npz` is of the script for CIFAR-10-C and an
image of 32 pixels, `published_large.npz` of that for ImageNet-C, its sizes of 224 pixels replaced
by the 40 of its image. Both images come from a formula. Draws are coarse, to be small. Libraries:
scikit-image 0.26.0, SciPy 1.17.1, OpenCV 4.13.0, Pillow 13.0.0, ImageMagick 6.9.11 with 16 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.conditions.condition import SEVERITIES
from edgeflare.conditions.image.severity_parameters import SeverityParameters

RECORDED = Path(__file__).parents[1] / "conditions" / "image" / "recorded"


@dataclass(frozen=True)
class Recording:
    """Inputs, draws and outputs of the published code, at one size.

    Attributes:
        size: "small" or "large", which parameters were used.
        stored: `image`, draws, and for each corruption its outputs (severities, HWC).

    """

    size: str
    stored: dict[str, NDArray[Any]]

    @property
    def image(self) -> NDArray[np.uint8]:
        return self.stored["image"]

    @property
    def normal(self) -> NDArray[np.float32]:
        """Standard normal draws of the image's shape; layers use its first channel."""
        return self.stored["normal"].astype(np.float32)

    @property
    def uniform(self) -> NDArray[np.float32]:
        """Uniform draws from -1 to 1, which the published code took in turn."""
        return (self.stored["uniform"] / 127.5 - 1).astype(np.float32)

    @property
    def salt_and_pepper(self) -> NDArray[np.float64]:
        """Two arrays of the image's shape, uniform in [0, 1)."""
        return (self.stored["salt_and_pepper"] + 0.5) / 65536

    def moves(self, reach: int, times: int) -> NDArray[np.int64]:
        """Return where pixels go behind glass: (times, height, width, 2)."""
        parts = self.stored["glass"][:times].astype(np.int64)
        return parts * 2 * reach // 256 - reach

    def row(self, parameters: SeverityParameters, severity: int) -> tuple[float, ...]:
        """Return the parameters that the published code had."""
        rows = parameters.small if self.size == "small" else parameters.large
        return rows[severity - 1]

    def parameter(self, parameters: SeverityParameters, severity: int) -> float:
        """Return the parameter of a corruption that has one."""
        (only,) = self.row(parameters, severity)
        return only

    def differences(self, name: str, ours: Callable[[int], NDArray[np.uint8]]) -> NDArray[np.int64]:
        """Return ours - published in gray levels, (severities, HWC); `ours` takes a severity."""
        made = np.array([ours(severity) for severity in SEVERITIES])
        return np.asarray(made.astype(np.int64) - self.stored[name])


@cache
def recording(size: str) -> Recording:
    with np.load(RECORDED / f"published_{size}.npz") as stored:
        return Recording(size, dict(stored))
