"""A sensor that is not calibrated, or no longer: its zero, its sensitivity, and their drift."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare.conditions.condition import at_severity, condition
from edgeflare.core.input_space import Input
from edgeflare_operators.array import as_type_of, spread

OFFSETS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""By how many spreads the zero is off."""

GAINS = (0.02, 0.05, 0.1, 0.2, 0.3)
"""By which share the sensitivity is off: from the tolerance of a good sensor to one that is old, or
mounted wrongly."""

DRIFTS = (0.1, 0.2, 0.4, 0.7, 1.0)
"""By how many spreads the zero has moved at the end."""


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
