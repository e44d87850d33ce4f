"""Conditions of arrays: (time, channels) or (values,), floats or integers.

Changes are in proportion to the spread of an array, the standard deviation of each channel, since
an array does not say its unit. Bounds are the domain's, so the caller enforces them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare.conditions.condition import at_severity, condition
from edgeflare.core.input_space import Input
from edgeflare_operators.array import as_type_of, spread

OFFSETS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Offsets of the zero, in spreads."""

GAINS = (0.02, 0.05, 0.1, 0.2, 0.3)
"""Relative errors of the sensitivity: from the tolerance of a good sensor to one that is old, or
mounted wrongly."""

DRIFTS = (0.1, 0.2, 0.4, 0.7, 1.0)
"""Shifts of the zero at the end, in spreads."""


@condition(
    "offset",
    domain="array",
    sets=("common",),
    summary="a zero that is off by 0.05 to 0.8 spreads, up or down, in each channel",
)
def offset(array: Input, severity: float, rng: np.random.Generator) -> Input:
    """Add a constant to each channel; without channels, the same to all values."""
    moved = at_severity(OFFSETS, severity) * spread(array) * _signs(array, rng)
    return as_type_of(array, array + moved)


@condition(
    "gain-error",
    domain="array",
    sets=("common",),
    summary="a sensitivity that is off by 2 to 30 %, up or down, in each channel",
)
def gain_error(array: Input, severity: float, rng: np.random.Generator) -> Input:
    """Multiply each channel by a factor; without channels, all values by the same."""
    factors = 1.0 + at_severity(GAINS, severity) * _signs(array, rng)
    return as_type_of(array, array * factors)


@condition(
    "drift",
    domain="array",
    sets=("common",),
    summary="a zero that moves evenly, by 0.1 to 1 spread at the end, up or down in each channel",
)
def drift(array: Input, severity: float, rng: np.random.Generator) -> Input:
    """Add a line to each channel that begins at 0; without channels, to the values in a row."""
    size = at_severity(DRIFTS, severity) * spread(array) * _signs(array, rng)
    time = np.linspace(0.0, 1.0, len(array)).reshape(-1, *(1 for _ in array.shape[1:]))
    return as_type_of(array, array + time * size)


def _signs(array: Input, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return -1 or 1 for each channel, that broadcasts to the array."""
    return np.where(rng.random(array.shape[1:]) < 0.5, -1.0, 1.0)


LOST_SHARES = (0.01, 0.05, 0.1, 0.2, 0.4)
"""Share of the rows that are lost."""

STUCK_SHARES = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Share of the time in which a channel is stuck, at the end."""


@condition(
    "dropped-samples",
    domain="array",
    sets=("common",),
    summary="1 to 40 % of the rows are lost; each is the last one that arrived",
)
def dropped_samples(array: Input, severity: float, rng: np.random.Generator) -> Input:
    """Lose rows, but never the first; without channels, a row is a value."""
    arrived = rng.random(len(array)) >= at_severity(LOST_SHARES, severity)
    arrived[0] = True
    last = np.maximum.accumulate(np.where(arrived, np.arange(len(array)), 0))
    return np.asarray(array[last])


@condition(
    "stuck-sensor",
    domain="array",
    sets=("common",),
    summary="one channel keeps its value for the last 5 to 80 % of the time",
)
def stuck_sensor(array: Input, severity: float, rng: np.random.Generator) -> Input:
    """Let a channel stop; without channels, the values behind a place are the one there."""
    flat: Input = array.reshape(len(array), -1).copy()
    channel = int(rng.integers(flat.shape[1]))
    stops = min(len(flat) - 1, round((1.0 - at_severity(STUCK_SHARES, severity)) * len(flat)))
    flat[stops:, channel] = flat[stops, channel]
    return flat.reshape(array.shape)


NOISES = (0.02, 0.05, 0.1, 0.2, 0.4)
"""Standard deviation of the noise over the spread: signal-to-noise ratios of 34, 26, 20, 14 and 8
dB. The augmentations of wearable sensors use some 0.05 (Um et al. 2017)."""

SPIKE_SHARES = (0.002, 0.005, 0.01, 0.02, 0.05)
"""Share of the values that are outliers."""

SPIKE_SIZE = 6.0
"""Size of an outlier in spreads: far beyond what noise makes of a value."""

STEPS = (0.05, 0.1, 0.25, 0.5, 1.0)
"""The step of a coarse converter over the spread: 6 to 7 bits to 2 of them for values within ± 2
spreads."""


@condition(
    "sensor-noise",
    domain="array",
    sets=("common", "noise"),
    summary="Gaussian noise of 0.02 to 0.4 spreads on every value",
)
def sensor_noise(array: Input, severity: float, rng: np.random.Generator) -> Input:
    """Add noise to every value."""
    sigma = at_severity(NOISES, severity) * spread(array)
    return as_type_of(array, array + sigma * rng.normal(size=array.shape))


@condition(
    "spikes",
    domain="array",
    sets=("common",),
    summary="outliers of 6 spreads, up or down, at 0.2 to 5 % of the values",
)
def spikes(array: Input, severity: float, rng: np.random.Generator) -> Input:
    """Add outliers; those of a severity are there at all higher ones."""
    struck = rng.random(array.shape) < at_severity(SPIKE_SHARES, severity)
    upwards = rng.random(array.shape) < 0.5
    sizes = np.where(upwards, SPIKE_SIZE, -SPIKE_SIZE) * spread(array)
    return as_type_of(array, array + np.where(struck, sizes, 0.0))


@condition(
    "coarse-steps",
    domain="array",
    sets=("common",),
    summary="values rounded to steps of 0.05 to 1 spread, as of a converter with few bits",
)
def coarse_steps(array: Input, severity: float, _rng: np.random.Generator) -> Input:
    """Round values to a coarser step; a channel without spread stays as it is."""
    steps = np.broadcast_to(at_severity(STEPS, severity) * spread(array), array.shape)
    known = steps > 0.0
    rounded = np.rint(array / np.where(known, steps, 1.0)) * steps
    return as_type_of(array, np.where(known, rounded, array))
