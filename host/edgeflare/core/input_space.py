"""The values that inputs may have, and the steps in which a search moves among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.input import Input

Real = NDArray[np.float64]
"""An input, a change of one or a direction, in levels."""


@dataclass(frozen=True, slots=True)
class InputSpace:
    """The values that the inputs of a domain may have.

    A search computes in *levels*, so that its constants hold for every domain. A level is a small
    step of one value; an 8-bit image has 255 of them from black to white.

    Attributes:
        dtype: numpy's name of the inputs' type. Values of integer types are whole numbers.
        lowest: the least that a value may be.
        highest: the most that a value may be.
        cell_axes: how many of the leading axes number the cells: the parts of an input that belong
            together, such as a pixel with all its channels.
        level: how much one level is, in the inputs' own units.

    """

    dtype: str
    lowest: float
    highest: float
    cell_axes: int
    level: float = 1.0

    def levels(self, one: Input) -> Real:
        """Return an input in levels."""
        real = one.astype(np.float64)
        return real if self.level == 1.0 else real / self.level

    def nearest(self, levels: Real) -> Input:
        """Return the input that is nearest to these values."""
        values = self._units(levels)
        return self._clipped(np.rint(values) if self._whole else values)

    def dithered(self, levels: Real, rng: np.random.Generator) -> Input:
        """Return an input near these values, rounded up or down by chance.

        So steps of less than a level are steps, where values are whole numbers.
        """
        values, chance = self._units(levels), rng.random(levels.shape)
        return self._clipped(np.floor(values + chance) if self._whole else values)

    def between(self, begin: Input, end: Input, share: float) -> Input:
        """Return the input at that share of the line between two inputs.

        No value is farther from that of `begin` than the value of `end` is.
        """
        change = share * np.subtract(end, begin, dtype=np.float64)
        return self._clipped(begin + (np.rint(change) if self._whole else change))

    def distance(self, one: Input, other: Input) -> float:
        """Return the Euclidean distance of two inputs, in levels."""
        return float(np.linalg.norm(self.levels(one) - self.levels(other)))

    def limits(self, one: Input) -> tuple[Real, Real]:
        """Return by how much each value of an input may fall and rise, in levels."""
        levels = self.levels(one)
        return self.lowest / self.level - levels, self.highest / self.level - levels

    def cells(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the cells of inputs of a shape."""
        return shape[: self.cell_axes]

    def cell_mask(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of an array of one value for each cell, which broadcasts to inputs."""
        return (*self.cells(shape), *(1 for _ in shape[self.cell_axes :]))

    @property
    def _whole(self) -> bool:
        return np.dtype(self.dtype).kind in "iu"

    def _units(self, levels: Real) -> Real:
        return levels if self.level == 1.0 else levels * self.level

    def _clipped(self, values: Real) -> Input:
        return np.clip(values, self.lowest, self.highest).astype(self.dtype)


EIGHT_BIT = InputSpace("uint8", 0, 255, cell_axes=2)
"""Whole numbers from 0 to 255 in rows, columns and channels."""
