"""Numbers as the data of SVG paths, in as few characters as show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

HEIGHT = 80
"""Units of a drawing from the lowest value to the highest."""

MIDDLE = 97
"""Where changes are drawn from, up and down; `DEPTH` below it the drawing ends."""

DEPTH = 13

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to the height of a drawing."""

    low: float
    high: float

    def heights(self, values: Values) -> NDArray[np.int64]:
        """Return where values lie, from `HEIGHT` at the lowest to 0 at the highest."""
        spread = self.high - self.low
        shares = (values - self.low) / spread if spread else np.full(values.shape, 0.5)
        return np.rint(HEIGHT * (1.0 - np.clip(shares, 0.0, 1.0))).astype(np.int64)


def finite(values: NDArray[np.generic]) -> Values:
    """Return values as float64, of any file: what is not finite is 0."""
    real: Values = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    return np.clip(real, -1e300, 1e300)  # so that the spread of any two is finite


def scale_of(series: Sequence[Values], *, zero: bool) -> Scale:
    """Return the scale that all of these values lie on; with 0 where bars begin there."""
    every = np.concatenate([one.ravel() for one in series] + ([np.zeros(1)] if zero else []))
    return Scale(float(every.min()), float(every.max()))


def curve_path(values: Values, scale: Scale, points: int) -> str:
    """Return a line through values, of at most so many points.

    Of a longer one each part is drawn from its least value to its greatest.

    Args:
        values: (time,), at least one.
        scale: from values to heights.
        points: at least 2.

    """
    if len(values) == 1:
        return f"M0 {scale.heights(values)[0]}h1"
    if len(values) <= points:
        places, kept = np.arange(len(values)), values
    else:
        parts = points // 2
        begins = np.arange(parts) * len(values) // parts
        low, high = np.minimum.reduceat(values, begins), np.maximum.reduceat(values, begins)
        places, kept = np.repeat(begins, 2), np.stack([low, high], axis=1).ravel()
    heights = scale.heights(kept).tolist()
    return "M" + " ".join(f"{x} {y}" for x, y in zip(places.tolist(), heights, strict=True))


def change_path(change: Values, points: int) -> str:
    """Return bars of a change, up or down from the middle, on the scale of its largest.

    Of more changes than `points`, each part has its largest. Any change at all is a unit long.
    """
    most = float(np.abs(change).max(initial=0.0))
    if not most:
        return ""
    parts = min(points, len(change))
    begins = np.arange(parts) * len(change) // parts
    width = len(change) / parts
    low, high = np.minimum.reduceat(change, begins), np.maximum.reduceat(change, begins)
    largest = np.where(-low > high, low, high)
    bars = []
    for n, value in enumerate(largest.tolist()):
        if value:
            length = max(1, round(DEPTH * abs(value) / most))
            bars.append(bar_path(n * width, width, MIDDLE, -length if value > 0 else length))
    return "".join(bars)


def bars_path(values: Values, scale: Scale, begin: float, width: float) -> str:
    """Return a bar for each value, from 0, which lies on the scale.

    Args:
        values: (values,).
        scale: from values to heights.
        begin: where the bar of a value begins in the unit that is its own.
        width: of a bar, in such units.

    """
    zero = int(scale.heights(np.zeros(1))[0])
    return "".join(
        bar_path(place + begin, width, zero, height - zero)
        for place, height in enumerate(scale.heights(values).tolist())
    )


def bar_path(left: float, width: float, base: int, length: int) -> str:
    """Return one bar; upwards where the length is negative."""
    return f"M{round(left, 2):g} {base}v{length or -1}h{round(width, 2):g}v{-length or 1}z"
