"""Values that did not arrive, for which those before them stand."""

from __future__ import annotations

import numpy as np

from edgeflare.conditions.condition import at_severity, condition
from edgeflare.core.input_space import Input

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
