"""The range of an 8-bit quantization that has the least squared error on given values.

A narrow range has fine steps and cuts values off; a wide one the reverse. Values within lose the
variance of a rounding, a twelfth of a step squared; those beyond, the square of what is cut off.
Zeros lose nothing, since zero always is a step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]

_STEPS = 255
_LOWEST, _HIGHEST = -128, 127

_SHARES = np.arange(30, 106, 5) / 100
"""Of the values' largest and least one, which are tried as ends of the range."""


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the largest value of a quantized tensor; zero lies between them or is one."""

    low: float
    high: float

    @property
    def quantization(self) -> tuple[float, int]:
        """Scale and zero point in int8; the zero point is within -128 and 127."""
        scale = float(np.float32((self.high - self.low) / _STEPS))
        zero_point = round(_LOWEST - self.low / scale)
        return scale, int(np.clip(zero_point, _LOWEST, _HIGHEST))


def range_of(scale: float, zero_point: int) -> Range:
    """Return the range that an int8 quantization has."""
    return Range((_LOWEST - zero_point) * scale, (_HIGHEST - zero_point) * scale)


def least_error_range(values: NDArray[np.floating], known: Range) -> Range:
    """Return the range with the least squared error.

    Args:
        values: real ones, of any shape.
        known: a range that is kept where no other has less error, or all values are zero.

    """
    ordered = np.sort(values, axis=None).astype(np.float64)
    least, largest = min(0.0, ordered[0]), max(0.0, ordered[-1])
    if least == largest:
        return known
    lows = least * _SHARES if least < 0 else np.zeros(1)
    highs = largest * _SHARES if largest > 0 else np.zeros(1)
    ends = np.stack(np.meshgrid(lows, highs, indexing="ij"), axis=-1).reshape(-1, 2)
    tried = np.vstack([[known.low, known.high], ends])
    best = tried[int(squared_errors(ordered, tried).argmin())]
    return Range(float(best[0]), float(best[1]))


def squared_errors(ordered: Real, ranges: Real) -> Real:
    """Return the expected sum of squared errors of values that are quantized in ranges.

    Args:
        ordered: the values, ascending.
        ranges: (ranges, 2), the least and the largest value of each.

    Returns:
        (ranges,).

    """
    low, high = ranges[:, 0], ranges[:, 1]
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    squares = np.concatenate([[0.0], np.cumsum(ordered**2)])
    below = np.searchsorted(ordered, low, side="left")
    until = np.searchsorted(ordered, high, side="right")
    above = len(ordered) - until
    zeros = np.searchsorted(ordered, 0, side="right") - np.searchsorted(ordered, 0, side="left")
    rounded = (until - below - zeros) * ((high - low) / _STEPS) ** 2 / 12
    cut_below = squares[below] - 2 * low * sums[below] + below * low**2
    cut_above = (
        (squares[-1] - squares[until]) - 2 * high * (sums[-1] - sums[until]) + above * high**2
    )
    return np.asarray(rounded + cut_below + cut_above)
