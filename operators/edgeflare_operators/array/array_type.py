"""What operators on arrays share: the spread of an array, and the way back to its type."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare_operators.operator_registry import Sample

Real = NDArray[np.float64]


def spread(array: Sample) -> Real:
    """Return the standard deviation of each channel over time, (channels,).

    Of an array of one row, or without channels, it is that of all values: (1,).
    """
    real = array.astype(np.float64)
    if array.ndim == 2 and len(array) > 1:
        return np.asarray(real.std(axis=0))
    return np.asarray(real.std()).reshape(1)


def as_type_of(array: Sample, real: Real) -> Sample:
    """Return real values in an array's type; integers are rounded, and clipped to what it holds."""
    if array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        real = np.clip(np.rint(real), limits.min, limits.max)
    return real.astype(array.dtype)
