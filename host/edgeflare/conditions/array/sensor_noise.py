"""What a sensor adds to each of its values: noise, outliers and coarse steps."""

from __future__ import annotations

import numpy as np

from edgeflare.conditions.condition import at_severity, condition
from edgeflare.core.input_space import Input
from edgeflare_operators.array import as_type_of, spread

NOISES = (0.02, 0.05, 0.1, 0.2, 0.4)
"""Standard deviation of the noise over the spread: signal-to-noise ratios of 34, 26, 20, 14 and 8
dB. The augmentations of wearable sensors use some 0.05 (Um et al. 2017)."""

SPIKE_SHARES = (0.002, 0.005, 0.01, 0.02, 0.05)
"""Share of the values that are outliers."""

SPIKE_SIZE = 6.0
"""By how many spreads an outlier is off: far beyond what noise makes of a value."""

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
