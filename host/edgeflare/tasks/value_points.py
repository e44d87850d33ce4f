"""Points among the values of an output, such as the keypoints of a body or a face."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Axes = Literal["xy", "yx"]
"""The order of the first two coordinates of a point."""


@dataclass(frozen=True)
class PointLayout:
    """How the values of an output are points, one behind the other.

    Attributes:
        size: number of values of a point in the output, such as 3 of (x, y, confidence).
        dimensions: number of them that count, from the first; the others are left out.
        unit: positions of two points whose distance is the unit of all distances; empty for the
            unit of the values.
        picture: values at the left, top, right and bottom edge of the picture; empty where the
            points lie in none.
        axes: order of the coordinates, see `Axes`.

    """

    size: int = 2
    dimensions: int = 2
    unit: tuple[int, ...] = ()
    picture: tuple[float, ...] = ()
    axes: Axes = "xy"

    def counted(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values that count: (..., points * dimensions) for (..., points * size)."""
        each = values.reshape(*values.shape[:-1], -1, self.size)[..., : self.dimensions]
        return each.reshape(*values.shape[:-1], -1)

    def apart(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how far the same points of two models are apart: (..., points), Euclidean.

        The unit is the mean of both models' distances between the points of `unit`, where these
        are given.

        Args:
            a: values that count, (..., points * dimensions).
            b: those of the other model.

        """
        first, second = (
            numbers.reshape(*numbers.shape[:-1], -1, self.dimensions) for numbers in (a, b)
        )
        apart = np.linalg.norm(first - second, axis=-1)
        if not self.unit:
            return np.asarray(apart)
        begin, end = self.unit
        lengths = [
            np.linalg.norm(points[..., begin, :] - points[..., end, :], axis=-1, keepdims=True)
            for points in (first, second)
        ]
        unit = np.maximum((lengths[0] + lengths[1]) / 2, np.finfo(np.float32).tiny)
        return np.where(apart > 0.0, apart / unit, 0.0)

    def shares(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return where points lie: (points, 2), x and y as shares of the picture's sides.

        Args:
            values: values that count of one input, (points * dimensions,).

        """
        left, top, right, bottom = self.picture
        places = values.reshape(-1, self.dimensions)[:, :2]
        if self.axes == "yx":
            places = places[:, ::-1]
        return np.asarray((places - [left, top]) / [right - left, bottom - top])

    def name(self, place: int) -> str:
        """Return the name of a value that counts, such as "point 3 x"."""
        point, axis = divmod(place, self.dimensions)
        axes = f"{self.axes}z"
        return f"point {point} {axes[axis] if self.dimensions <= len(axes) else f'value {axis}'}"
