"""The values that inputs may have, and the steps in which a search moves among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Input = NDArray[Any]
"""One input: an array whose shape and dtype the domain of the pair gives a meaning."""

Real = NDArray[np.float64]
"""An input, a change of one or a direction, in levels."""

_Value = TypeVar("_Value", bound=np.generic)


def read_only(array: NDArray[_Value]) -> NDArray[_Value]:
    """Return an array that shows another one, and that nobody can write to."""
    view = array[...]
    view.flags.writeable = False
    return view


@dataclass(frozen=True, slots=True)
class Distances:
    """How far an input is from its seed.

    Attributes:
        l2: Euclidean distance, in levels.
        linf: largest change of a value, in levels.
        mean_abs: mean absolute change of a value, in levels.
        changed: number of cells that differ.

    """

    l2: float
    linf: float
    mean_abs: float
    changed: int


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

    def levels(self, input_: Input) -> Real:
        """Return an input in levels."""
        real = input_.astype(np.float64)
        return real if self.level == 1.0 else real / self.level

    def nearest(self, levels: Real) -> Input:
        """Return the input that is nearest to these values."""
        values = self._units(levels)
        return self.clipped(np.rint(values) if self.whole else values)

    def dithered(self, levels: Real, rng: np.random.Generator) -> Input:
        """Return an input near these values, rounded up or down by chance.

        So steps of less than a level are steps, where values are whole numbers.
        """
        values, chance = self._units(levels), rng.random(levels.shape)
        if not self.whole:
            return self.clipped(values)
        chance += values
        np.floor(chance, out=chance)
        return self.clipped(chance)

    def between(self, begin: Input, end: Input, share: float) -> Input:
        """Return the input at that share of the line between two inputs.

        No value is farther from that of `begin` than the value of `end` is.
        """
        change = share * np.subtract(end, begin, dtype=np.float64)
        return self.clipped(begin + (np.rint(change) if self.whole else change))

    def distance(self, one: Input, other: Input) -> float:
        """Return the Euclidean distance of two inputs, in levels."""
        return float(np.linalg.norm(self.levels(one) - self.levels(other)))

    def limits(self, input_: Input) -> tuple[Real, Real]:
        """Return by how much each value of an input may fall and rise, in levels."""
        levels = self.levels(input_)
        return self.lowest / self.level - levels, self.highest / self.level - levels

    def cells(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the cells of inputs of a shape."""
        return shape[: self.cell_axes]

    def cell_mask(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of an array of one value for each cell, which broadcasts to inputs."""
        return (*self.cells(shape), *(1 for _ in shape[self.cell_axes :]))

    def contains(self, input_: Input) -> bool:
        """Whether all values of an input lie between the limits; no value that is no number does.

        Args:
            input_: an input of the space's type.

        """
        # Rounded as the values are: 0.1 is not what float32 has of it.
        lowest, highest = np.array([self.lowest, self.highest]).astype(self.dtype)
        return bool(input_.min() >= lowest and input_.max() <= highest)

    def clipped(self, values: Real | Input) -> Input:
        """Return values between the limits, in the space's type."""
        return np.clip(values, self.lowest, self.highest).astype(self.dtype)

    @property
    def whole(self) -> bool:
        """Whether values are whole numbers."""
        return np.dtype(self.dtype).kind in "iu"

    @property
    def ordered(self) -> bool:
        """Whether values are quantities, so that the size of a change says something."""
        return True

    @property
    def is_limited(self) -> bool:
        """Whether the type has values beyond the limits."""
        limits = np.iinfo(self.dtype) if self.whole else np.finfo(self.dtype)
        return bool(self.lowest > limits.min or self.highest < limits.max)

    @property
    def span(self) -> float:
        """How many levels lie between the limits; infinite where there is none."""
        return (self.highest - self.lowest) / self.level

    def distances(self, input_: Input, seed: Input) -> Distances:
        """Return how far an input is from its seed."""
        change = np.abs(self.levels(input_) - self.levels(seed))
        cells = change.reshape(*self.cells(change.shape), -1)
        return Distances(
            l2=float(np.sqrt((change**2).sum())),
            linf=float(change.max()),
            mean_abs=float(change.mean()),
            changed=int(cells.any(axis=-1).sum()),
        )

    def _units(self, levels: Real) -> Real:
        return levels if self.level == 1.0 else levels * self.level


EIGHT_BIT = InputSpace("uint8", 0, 255, cell_axes=2)
"""Whole numbers from 0 to 255 in rows, columns and channels."""
