"""How far a mutant may be from its seed: a trigger far away says little about real inputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import floor, inf, sqrt
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.core.input_space import EIGHT_BIT, Input, InputSpace

Change = NDArray[Any]
"""What an input differs by from its seed, in the inputs' own units, in a type that holds it."""

_WIDER = {"uint8": np.int16, "int8": np.int16, "uint16": np.int32, "int16": np.int32}
"""Types of inputs whose changes are computed exactly, and the types that hold these."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """A ball around the seed, within the input space.

    Values of up to 16 bits are computed with exactly, as whole numbers; others in float64.

    Attributes:
        max_linf: the most that one value may change, in levels; None for no bound.
        max_l2: the most that the Euclidean distance may be, in levels; None for no bound.
        space: the values that inputs may have.

    """

    max_linf: float | None = None
    max_l2: float | None = None
    space: InputSpace = EIGHT_BIT
    # What is asked for each mutant, computed once: the two bounds in the inputs' own units.
    _most: float = field(init=False, repr=False, compare=False)
    _longest: float = field(init=False, repr=False, compare=False)
    _most_squared: float = field(init=False, repr=False, compare=False)
    _wide: Any = field(init=False, repr=False, compare=False)
    _exact: bool = field(init=False, repr=False, compare=False)
    _whole: bool = field(init=False, repr=False, compare=False)
    _limited: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute what is asked for each mutant."""
        space = self.space
        longest = inf if self.max_l2 is None else self.max_l2 * space.level
        # There is room for what a root and a sum of squares lose by rounding.
        squared = longest**2
        computed = {
            "_most": inf if self.max_linf is None else self.max_linf * space.level,
            "_longest": longest,
            "_most_squared": squared + max(1e-3 if space.whole else 0.0, 1e-14 * squared),
            "_wide": _WIDER.get(space.dtype, np.float64),
            "_exact": space.dtype in _WIDER,
            "_whole": space.whole,
            "_limited": space.is_limited,
        }
        for name, value in computed.items():
            object.__setattr__(self, name, value)

    def holds(self, input_: Input, seed: Input) -> bool:
        """Whether an input lies within the space and the bounds of its seed."""
        if self._limited and not self.space.contains(input_):
            return False
        if self.max_linf is None and self.max_l2 is None:
            return True
        if self._exact and self.max_linf is not None:
            largest = _largest_change(input_.reshape(-1), seed.reshape(-1))
            if largest > self._most or input_.size * largest**2 <= self._most_squared:
                return largest <= self._most
        # Not by OpenCV, whose squares of 16 bits are wrong on processors with AVX-512 (4.14).
        change = np.subtract(input_, seed, dtype=self._wide)
        if self.max_linf is not None and not self._exact:
            largest = max(change.max().item(), -change.min().item())
            if largest > self._most:
                return False
        return self.max_l2 is None or self._squared(change) <= self._most_squared

    def project(self, input_: Input, seed: Input) -> Input:
        """Return an input within the bounds: the same one, or one on the way to the seed.

        Values beyond the space are brought back first, then those that changed too much, then all
        together. Fractions of values that are whole numbers, and digits that the type has not, are
        cut towards the seed, so that the result holds the bounds.

        Args:
            input_: an input whose values are finite.
            seed: seed of the mutant, which lies within the space.

        """
        if self.holds(input_, seed):
            return input_
        change = np.subtract(
            self.space.clipped(input_) if self._limited else input_, seed, dtype=self._wide
        )
        if self.max_linf is not None:
            most = floor(self._most) if self._whole else self._most
            change = np.clip(change, -most, most)
        if self.max_l2 is not None and (squared := self._squared(change)) > self._most_squared:
            change = change * (self._longest / sqrt(squared))
            if self._whole:
                change = np.trunc(change).astype(self._wide)
        # No value is farther from the seed than the change says.
        moved: Input = np.add(seed, change, dtype=self._wide).astype(self.space.dtype)
        if self._whole:
            return moved
        rounded_up = np.abs(np.subtract(moved, seed, dtype=self._wide)) > np.abs(change)
        return np.where(rounded_up, np.nextafter(moved, seed), moved)

    def _squared(self, change: Change) -> float:
        """Return the square of a change's length, the same for any number of threads."""
        flat = change.reshape(-1)
        if self._exact:
            flat = flat.astype(np.int64)
            return int(flat @ flat)
        return float(np.square(flat).sum())


def _largest_change(flat: Input, home: Input) -> int:
    """Return the most by which two rows of whole numbers of at most 16 bits differ in a value."""
    if flat.size < _MANY:
        return round(cv2.norm(flat, home, cv2.NORM_INF))
    change = np.maximum(flat, home)
    change -= np.minimum(flat, home)
    # A difference of more than the type holds is right modulo its values, so without its sign.
    return int(change.view(f"u{change.itemsize}").max())


_MANY = 2048
"""Values from which on numpy finds the largest change in less time than OpenCV, which looks at one
value after the other: 9 µs in place of 58 for 16,000 of 16 bits."""

UNBOUNDED = Bounds()
