"""Distances between the values that two models give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
"""(values,) or (frames, values)."""

DistanceName = Literal[
    "absolute", "mean-absolute", "relative", "cosine", "l2", "linf", "normalized"
]
"""How far the values a and b of two models are apart.

absolute, linf: the largest |a - b| of a value. mean-absolute: the mean of |a - b| over the values.
l2: the Euclidean norm of a - b. relative: that norm over the larger one of a and b. cosine: 1 - the
cosine of the angle between a and b. normalized: the mean distance between the same points of a and
b, over the distance between two named points.
"""


def largest(a: Values, b: Values) -> Values:
    """Return the largest difference of a value, for each frame."""
    return np.asarray(np.abs(a - b).max(axis=-1))


def mean_absolute(a: Values, b: Values) -> Values:
    """Return the mean difference of the values, for each frame."""
    return np.asarray(np.abs(a - b).mean(axis=-1))


def euclidean(a: Values, b: Values) -> Values:
    """Return the Euclidean norm of the difference, for each frame."""
    return np.asarray(np.linalg.norm(a - b, axis=-1))


def relative(a: Values, b: Values) -> Values:
    """Return the norm of the difference over the larger norm; 0 where both are zero."""
    larger = np.maximum(np.linalg.norm(a, axis=-1), np.linalg.norm(b, axis=-1))
    return np.asarray(euclidean(a, b) / np.where(larger > 0.0, larger, 1.0))


def cosine(a: Values, b: Values) -> Values:
    """Return 1 - cos of the angle; 1 where one alone is zero, 0 where both are."""
    norms = np.linalg.norm(a, axis=-1), np.linalg.norm(b, axis=-1)
    product = norms[0] * norms[1]
    angle = np.clip((a * b).sum(axis=-1) / np.where(product > 0.0, product, 1.0), -1.0, 1.0)
    both_zero = (norms[0] == 0.0) & (norms[1] == 0.0)
    return np.where(both_zero | (a == b).all(axis=-1), 0.0, 1.0 - angle)


def normalized(point_size: int, begin: int, end: int) -> Callable[[Values, Values], Values]:
    """Return the mean distance of points, over that between two of them.

    The unit is the mean of both models' distances between the two points.

    Args:
        point_size: values of a point, such as 2 for x and y.
        begin: position of one of the two points, from 0.
        end: position of the other.

    """

    def distance(a: Values, b: Values) -> Values:
        first, second = (one.reshape(*one.shape[:-1], -1, point_size) for one in (a, b))
        apart = np.linalg.norm(first - second, axis=-1).mean(axis=-1)
        units = [
            np.linalg.norm(one[..., begin, :] - one[..., end, :], axis=-1)
            for one in (first, second)
        ]
        unit = (units[0] + units[1]) / 2
        return np.where(apart > 0.0, apart / np.maximum(unit, np.finfo(np.float32).tiny), 0.0)

    return distance


DISTANCES: dict[str, Callable[[Values, Values], Values]] = {
    "absolute": largest,
    "mean-absolute": mean_absolute,
    "relative": relative,
    "cosine": cosine,
    "l2": euclidean,
    "linf": largest,
}
"""Those that need no points, by name."""
