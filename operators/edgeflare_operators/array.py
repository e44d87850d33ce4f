"""Operators on arrays of numbers: (time, channels) or (values,), floats or integers.

Changes are in proportion to the spread of the array, since it does not say its unit. Bounds are the
domain's, so the caller enforces them; values stay what their type holds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare_operators.operator_registry import Sample, operator

_MOST_DROPPED = 0.1
"""The share of rows that is lost, at most; one row may always be."""

_WARP_KNOTS = 4
"""Parts of the time that have a speed each."""

_WARP_SPEEDS = (0.8, 1.25)
"""How many times as fast a part is, before all are brought to the array's length."""

MOST_JITTER = 0.1
"""Standard deviation of the noise, at most, over the spread."""

_SCALING = 0.1
"""Standard deviation of the factors around 1."""

_MOST_DRIFT = 0.5
"""Standard deviation of the drift at its knots, at most, over the spread."""

_DRIFT_KNOTS = 4
"""Points in time between which the drift is a straight line."""

_Real = NDArray[np.float64]


def spread(array: Sample) -> _Real:
    """Return the standard deviation of each channel over time, (channels,).

    Of an array of one row, or without channels, it is that of all values: (1,).
    """
    real = array.astype(np.float64)
    if array.ndim == 2 and len(array) > 1:
        return np.asarray(real.std(axis=0))
    return np.asarray(real.std()).reshape(1)


def as_type_of(array: Sample, real: _Real) -> Sample:
    """Return real values in an array's type, clipped to what it holds; integers are rounded."""
    if array.dtype.kind in "iu":
        whole = np.iinfo(array.dtype)
        return np.clip(np.rint(real), whole.min, whole.max).astype(array.dtype)
    limits = np.finfo(array.dtype)
    return np.clip(real, limits.min, limits.max).astype(array.dtype)


@operator("jitter", domain="array")
def jitter(array: Sample, rng: np.random.Generator) -> Sample:
    """Add Gaussian noise to every value."""
    sigma = rng.uniform(0.0, MOST_JITTER)
    return as_type_of(array, array + sigma * spread(array) * rng.normal(size=array.shape))


@operator("scaling", domain="array")
def scaling(array: Sample, rng: np.random.Generator) -> Sample:
    """Multiply each channel by a factor near 1; without channels, all values by one."""
    return as_type_of(array, array * rng.normal(1.0, _SCALING, array.shape[1:]))


@operator("drift", domain="array")
def drift(array: Sample, rng: np.random.Generator) -> Sample:
    """Add a slowly changing offset to each channel; without channels, to the values in a row."""
    flat = array.reshape(len(array), -1)
    sigma = rng.uniform(0.0, _MOST_DRIFT)
    knots = sigma * spread(array) * rng.normal(size=(_DRIFT_KNOTS, flat.shape[1]))
    places = np.linspace(0.0, _DRIFT_KNOTS - 1.0, len(array))
    offsets = [np.interp(places, np.arange(_DRIFT_KNOTS), channel) for channel in knots.T]
    return as_type_of(array, array + np.stack(offsets, axis=1).reshape(array.shape))


@operator("swapped-channels", domain="array")
def swapped_channels(array: Sample, rng: np.random.Generator) -> Sample:
    """Swap two channels; without channels, two values. A single one stays where it is."""
    mutant: Sample = array.copy()
    if mutant.shape[-1] > 1:
        one, other = rng.choice(mutant.shape[-1], 2, replace=False)
        mutant[..., [one, other]] = array[..., [other, one]]
    return mutant


@operator("dropped-samples", domain="array")
def dropped_samples(array: Sample, rng: np.random.Generator) -> Sample:
    """Lose a run of rows: each is the last one before, as of a sensor that does not answer.

    Without channels, a row is a value. The first row is never lost.
    """
    rows = len(array)
    count = int(rng.integers(1, max(1, int(_MOST_DROPPED * rows)) + 1))
    begin = int(rng.integers(1, max(2, rows - count + 1)))
    mutant: Sample = array.copy()
    mutant[begin : begin + count] = array[begin - 1]
    return mutant


@operator("time-warp", domain="array")
def time_warp(array: Sample, rng: np.random.Generator) -> Sample:
    """Let time run unevenly; the first and the last row stay, others are interpolated."""
    speeds = rng.uniform(*_WARP_SPEEDS, _WARP_KNOTS)
    reached = np.concatenate([[0.0], np.cumsum(speeds)])
    rows = np.arange(len(array))
    last = len(array) - 1.0
    even = np.linspace(0.0, last, _WARP_KNOTS + 1)
    times = np.interp(rows, even, reached / reached[-1] * last)
    channels = array.reshape(len(array), -1).astype(np.float64).T
    warped = [np.interp(times, rows, channel) for channel in channels]
    return as_type_of(array, np.stack(warped, axis=1).reshape(array.shape))
