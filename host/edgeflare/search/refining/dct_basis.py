"""An image's low frequencies: the space in which slopes are learned."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.input_space import Real

MOST = 16
"""Cosines along each side of an image."""

OTHER_CHANNELS = 0.3
"""Frequency at which differences between channels count."""


class DCTBasis:
    """The lowest cosines of images of a shape, orthonormal."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._bases = tuple(_cosines(size) for size in shape)
        self._image_shape = shape
        self.shape = tuple(len(basis) for basis in self._bases)
        rows, columns, channels = (np.arange(size) for size in self.shape)
        self.frequencies = np.sqrt(
            ((rows / shape[0]) ** 2)[:, None, None]
            + ((columns / shape[1]) ** 2)[None, :, None]
            + ((channels > 0) * OTHER_CHANNELS**2)[None, None, :]
        ).reshape(-1)

    def __len__(self) -> int:
        """Return the number of cosines."""
        return self.frequencies.size

    def of(self, image: Real) -> Real:
        """Return the coefficients of an image, (cosines,), or of several: (N, cosines)."""
        rows, columns, channels = self._bases
        height, width, depth = self._image_shape
        part = rows @ image.reshape(-1, height, width * depth)
        part = columns @ part.reshape(-1, len(rows), width, depth)
        return np.asarray((part @ channels.T).reshape(*image.shape[:-3], -1))

    def values(self, coefficients: Real) -> Real:
        """Return the image that has the coefficients: (H, W, C)."""
        rows, columns, channels = self._bases
        part = coefficients.reshape(self.shape) @ channels
        part = columns.T @ part
        return np.tensordot(rows, part, (0, 0))

    def waves(self, numbers: NDArray[np.intp]) -> Real:
        """Return some of the cosines as images: (N, H, W, C)."""
        rows, columns, channels = (
            basis[at]
            for basis, at in zip(self._bases, np.unravel_index(numbers, self.shape), strict=True)
        )
        planes = rows[:, :, None] * columns[:, None, :]
        return np.asarray(planes[..., None] * channels[:, None, None, :])


@lru_cache(maxsize=16)
def _cosines(size: int) -> Real:
    """Return the lowest cosines of a length: (cosines, size)."""
    waves = np.arange(min(size, MOST))[:, None]
    cosines = np.cos(np.pi * (np.arange(size) + 0.5) * waves / size)
    return np.asarray(cosines / np.linalg.norm(cosines, axis=1, keepdims=True))
