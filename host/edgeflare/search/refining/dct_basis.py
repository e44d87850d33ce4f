"""The low frequencies of inputs: the space in which gradients are learned."""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.input_space import Real

MOST = 256
"""Cosines over the cells: all of them along one axis, 16 along each of two, or 6 of three."""

MOST_CHANNELS = 16
"""Cosines over the values of a cell."""

OTHER_CHANNELS = 0.3
"""Frequency at which differences between channels count."""


class DCTBasis:
    """The lowest cosines of inputs of a shape, orthonormal.

    Every input is computed with in four axes: frames, rows and columns of cells, and the channels
    of a cell. Those that it does not have are of length 1, which has one cosine, the constant 1.
    """

    def __init__(self, shape: tuple[int, ...], cell_axes: int = 2) -> None:
        """Make the basis.

        Args:
            shape: of the inputs.
            cell_axes: how many of the leading axes number the cells: 1 for rows alone, 2 for rows
                and columns, 3 for frames as well; see `InputSpace`.

        """
        cells, channels_of_cell = shape[:cell_axes], prod(shape[cell_axes:])
        self._input_shape = shape
        before, behind = int(cell_axes < 3), int(cell_axes < 2)
        self._planes = (*(1,) * before, *cells, *(1,) * behind, channels_of_cell)
        most = round(MOST ** (1 / cell_axes))
        self._bases = (
            *(_cosines(size, most) for size in self._planes[:-1]),
            _cosines(self._planes[-1], MOST_CHANNELS),
        )
        self.shape = tuple(len(basis) for basis in self._bases)
        frames, rows, columns, channels = np.ix_(*map(np.arange, self.shape))
        self.frequencies = np.sqrt(
            (rows / self._planes[1]) ** 2
            + (columns / self._planes[2]) ** 2
            + (channels > 0) * OTHER_CHANNELS**2
            + (frames / self._planes[0]) ** 2
        ).reshape(-1)

    def __len__(self) -> int:
        """Return the number of cosines."""
        return self.frequencies.size

    def of(self, one: Real) -> Real:
        """Return the coefficients of an input, (cosines,), or of several: (N, cosines)."""
        frames, rows, columns, channels = self._bases
        length, height, width, depth = self._planes
        part = rows @ one.reshape(-1, height, width * depth)
        part = columns @ part.reshape(-1, len(rows), width, depth)
        part = frames @ (part @ channels.T).reshape(-1, length, prod(self.shape[1:]))
        several = one.shape[: one.ndim - len(self._input_shape)]
        return np.asarray(part.reshape(*several, -1))

    def values(self, coefficients: Real) -> Real:
        """Return the input that has the coefficients, in levels."""
        frames, rows, columns, channels = self._bases
        part = columns.T @ (coefficients.reshape(self.shape) @ channels)
        part = np.tensordot(rows, part, (0, 1))
        return np.tensordot(frames, part, (0, 1)).reshape(self._input_shape)

    def waves(self, numbers: NDArray[np.intp]) -> Real:
        """Return some of the cosines as inputs: (N, *shape)."""
        frames, rows, columns, channels = (
            basis[at]
            for basis, at in zip(self._bases, np.unravel_index(numbers, self.shape), strict=True)
        )
        planes = rows[:, :, None] * columns[:, None, :]
        waves = planes[..., None] * channels[:, None, None, :]
        waves = frames[:, :, None, None, None] * waves[:, None]
        return np.asarray(waves.reshape(-1, *self._input_shape))


@lru_cache(maxsize=16)
def _cosines(size: int, most: int) -> Real:
    """Return the lowest cosines of a length: (cosines, size)."""
    waves = np.arange(min(size, most))[:, None]
    cosines = np.cos(np.pi * (np.arange(size) + 0.5) * waves / size)
    return np.asarray(cosines / np.linalg.norm(cosines, axis=1, keepdims=True))
