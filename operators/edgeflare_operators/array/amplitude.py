"""Changes of the values: noise, another sensitivity, and a slow drift of the zero point."""

from __future__ import annotations

import numpy as np

from edgeflare_operators.array.array_type import as_type_of, spread
from edgeflare_operators.operator_registry import Sample, operator

MOST_JITTER = 0.1
"""Standard deviation of the noise, at most, over the spread."""

SCALING = 0.1
"""Standard deviation of the factors around 1."""

MOST_DRIFT = 0.5
"""Standard deviation of the drift at its knots, at most, over the spread."""

DRIFT_KNOTS = 4
"""Points in time between which the drift is a straight line."""


@operator("jitter", domain="array")
def jitter(array: Sample, rng: np.random.Generator) -> Sample:
    """Add Gaussian noise to every value."""
    sigma = rng.uniform(0.0, MOST_JITTER)
    return as_type_of(array, array + sigma * spread(array) * rng.normal(size=array.shape))


@operator("scaling", domain="array")
def scaling(array: Sample, rng: np.random.Generator) -> Sample:
    """Multiply each channel by a factor near 1; without channels, all values by one."""
    return as_type_of(array, array * rng.normal(1.0, SCALING, array.shape[1:]))


@operator("drift", domain="array")
def drift(array: Sample, rng: np.random.Generator) -> Sample:
    """Add a slowly changing offset to each channel; without channels, to the values in a row."""
    flat = array.reshape(len(array), -1)
    sigma = rng.uniform(0.0, MOST_DRIFT)
    knots = sigma * spread(array) * rng.normal(size=(DRIFT_KNOTS, flat.shape[1]))
    places = np.linspace(0.0, DRIFT_KNOTS - 1.0, len(array))
    offsets = [np.interp(places, np.arange(DRIFT_KNOTS), channel) for channel in knots.T]
    return as_type_of(array, array + np.stack(offsets, axis=1).reshape(array.shape))
