"""How far a mutant may be from its seed: a trigger far away says little about real inputs."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.input import Input

DEFAULT_LINF = 250.0
"""Gray levels. The 90th percentile of the published loop's triggers is 251 to 255 on all pairs."""

DEFAULT_RMS = 90.0
"""Gray levels, root mean square over an image's values. The 90th percentile of the published loop's
triggers lies between 97 (LeNet-5) and 145 (ResNet-20)."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """A ball around the seed.

    Attributes:
        max_linf: the most that one value may change, in gray levels; None for no bound.
        max_l2: the most that the Euclidean distance may be, in gray levels; None for no bound.

    """

    max_linf: float | None = None
    max_l2: float | None = None

    def holds(self, image: Input, seed: Input) -> bool:
        """Whether an image lies within the bounds of its seed."""
        change = np.subtract(image, seed, dtype=np.int16)
        if self.max_linf is not None and max(int(change.max()), -int(change.min())) > self.max_linf:
            return False
        return self.max_l2 is None or _squared(change) <= _square(self.max_l2)

    def project(self, image: Input, seed: Input) -> Input:
        """Return an image within the bounds: the same one, or one on the way to the seed.

        Single values are brought back first, then all together; fractions are cut towards the
        seed, so that the result holds the bounds to the last gray level.
        """
        if self.holds(image, seed):
            return image
        change = np.subtract(image, seed, dtype=np.int16)
        if self.max_linf is not None:
            most = int(self.max_linf)
            change = np.clip(change, -most, most)
        if self.max_l2 is not None and (squared := _squared(change)) > _square(self.max_l2):
            change = np.trunc(change * (self.max_l2 / sqrt(squared))).astype(np.int16)
        inside: Input = np.add(seed, change, dtype=np.int16).astype(np.uint8)
        return inside


UNBOUNDED = Bounds()


def _square(bound: float) -> float:
    """Return a bound's square; squared distances are whole numbers, and a root's square may not."""
    return bound**2 + 1e-3


def _squared(change: NDArray[np.int16]) -> int:
    flat = change.reshape(-1).astype(np.int64)
    return int(flat @ flat)
