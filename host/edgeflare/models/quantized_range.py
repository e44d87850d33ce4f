"""The range of a quantized tensor, and the one that has the least squared error on given values.

A narrow range has fine steps and cuts values off; a wide one the reverse. Values within lose the
variance of a rounding, a twelfth of a step squared; those beyond, the square of what is cut off.
Zeros lose nothing, since zero always is a step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from edgeflare.models.tflite_graph import GraphTensor

Real = NDArray[np.float64]

_STEPS_OF_8_BITS = 255
_LOWEST, _HIGHEST = -128, 127

_SHARES = np.arange(30, 106, 5) / 100
"""Multiples of the values' largest and least one that are tried as ends of the range."""


@dataclass(frozen=True, slots=True)
class QuantizedRange:
    """The least and the largest value of a quantized tensor; zero lies between them or is one.

    Attributes:
        low: the least value.
        high: the largest.
        steps: how many steps lie between the two.

    """

    low: float
    high: float
    steps: int = _STEPS_OF_8_BITS

    @property
    def step(self) -> float:
        """The distance of two values."""
        return (self.high - self.low) / self.steps

    @property
    def quantization(self) -> tuple[float, int]:
        """Scale and zero point in int8; the zero point is within -128 and 127."""
        scale = float(np.float32(self.step))
        zero_point = round(_LOWEST - self.low / scale)
        return scale, int(np.clip(zero_point, _LOWEST, _HIGHEST))

    def nearest(self, values: Real) -> Real:
        """Return values rounded to the steps, and clipped to the range."""
        below = round(-self.low / self.step)
        steps = np.clip(np.round(values / self.step), -below, self.steps - below)
        return np.asarray(steps * self.step)

    def beyond(self, values: Real) -> tuple[float, float]:
        """Return the shares of values that lie below and above the range by more than a step."""
        if not values.size:
            return 0.0, 0.0
        below = float((values < self.low - self.step).mean())
        return below, float((values > self.high + self.step).mean())

    def squared_error(self, values: Real) -> float:
        """Return the mean squared error of values that are quantized; 0 of none."""
        return float(np.square(values - self.nearest(values)).mean()) if values.size else 0.0


def range_of(tensor: GraphTensor) -> QuantizedRange | None:
    """Return the range of an activation; None where it is not of 8 or 16 bits with one scale."""
    if (
        tensor.dtype not in ("int8", "uint8", "int16")
        or len(tensor.scales) != 1
        or not tensor.scales[0]
    ):
        return None
    limits = np.iinfo(tensor.dtype)
    low, high = (
        (limit - tensor.zero_points[0]) * tensor.scales[0] for limit in (limits.min, limits.max)
    )
    return QuantizedRange(low, high, int(limits.max) - int(limits.min))


def least_error_range(values: NDArray[np.floating], known: QuantizedRange) -> QuantizedRange:
    """Return the range with the least squared error among those with as many steps as a known one.

    Of 16 bits it is the same on both sides of zero, as the format wants it.

    Args:
        values: real ones, of any shape.
        known: a range that is kept where no other has less error, or all values are zero.

    """
    ordered = np.sort(values, axis=None).astype(np.float64)
    least, largest = (min(0.0, ordered[0]), max(0.0, ordered[-1])) if ordered.size else (0.0, 0.0)
    if least == largest:
        return known
    lows = least * _SHARES if least < 0 else np.zeros(1)
    highs = largest * _SHARES if largest > 0 else np.zeros(1)
    ends = np.stack(np.meshgrid(lows, highs, indexing="ij"), axis=-1).reshape(-1, 2)
    if known.steps > _STEPS_OF_8_BITS:
        sides = np.abs(ends).max(axis=1)
        ends = np.stack([-sides, sides], axis=-1)
    tried = np.vstack([[known.low, known.high], ends])
    best = tried[int(squared_errors(ordered, tried, known.steps).argmin())]
    return replace(known, low=float(best[0]), high=float(best[1]))


def squared_errors(ordered: Real, ranges: Real, steps: int = _STEPS_OF_8_BITS) -> Real:
    """Return the expected sum of squared errors of values that are quantized in ranges.

    Args:
        ordered: the values, ascending.
        ranges: (ranges, 2), the least and the largest value of each.
        steps: how many steps lie between these two.

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
    rounded = (until - below - zeros) * ((high - low) / steps) ** 2 / 12
    cut_below = squares[below] - 2 * low * sums[below] + below * low**2
    cut_above = (
        (squares[-1] - squares[until]) - 2 * high * (sums[-1] - sums[until]) + above * high**2
    )
    return np.asarray(rounded + cut_below + cut_above)
