"""Changes in time: samples that were lost, and a clock that runs unevenly."""

from __future__ import annotations

import numpy as np

from edgeflare_operators.array.array_type import as_type_of
from edgeflare_operators.operator_registry import Sample, operator

MOST_DROPPED = 0.1
"""The share of rows that is lost, at most; one row may always be."""

WARP_KNOTS = 4
"""Parts of the time that have a speed each."""

WARP_SPEEDS = (0.8, 1.25)
"""How many times as fast a part is, before all are brought to the array's length."""


@operator("dropped-samples", domain="array")
def dropped_samples(array: Sample, rng: np.random.Generator) -> Sample:
    """Lose a run of rows: each is the last one before, as of a sensor that does not answer.

    Without channels, a row is a value. The first row is never lost.
    """
    rows = len(array)
    count = int(rng.integers(1, max(1, int(MOST_DROPPED * rows)) + 1))
    begin = int(rng.integers(1, max(2, rows - count + 1)))
    mutant: Sample = array.copy()
    mutant[begin : begin + count] = array[begin - 1]
    return mutant


@operator("time-warp", domain="array")
def time_warp(array: Sample, rng: np.random.Generator) -> Sample:
    """Let time run unevenly; the first and the last row stay, others are interpolated."""
    speeds = rng.uniform(*WARP_SPEEDS, WARP_KNOTS)
    reached = np.concatenate([[0.0], np.cumsum(speeds)])
    rows = np.arange(len(array))
    last = len(array) - 1.0
    even = np.linspace(0.0, last, WARP_KNOTS + 1)
    times = np.interp(rows, even, reached / reached[-1] * last)
    channels = array.reshape(len(array), -1).astype(np.float64).T
    warped = [np.interp(times, rows, channel) for channel in channels]
    return as_type_of(array, np.stack(warped, axis=1).reshape(array.shape))
