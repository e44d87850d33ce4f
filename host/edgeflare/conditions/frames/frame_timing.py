"""Frames that did not arrive, or are taken less often; the last one stands for each."""

from __future__ import annotations

import numpy as np

from edgeflare.conditions.condition import at_severity, condition
from edgeflare.core.input_space import Input

DROPPED_SHARES = (0.05, 0.1, 0.2, 0.3, 0.5)
"""Share of the frames that are dropped, as by a processor that does not keep up."""

SLOWNESS = (1.25, 1.5, 2.0, 3.0, 4.0)
"""Over how many frames one is held: of 30 frames a second 24, 20, 15, 10 and 7.5 are left."""


@condition(
    "dropped-frames",
    domain="frames",
    sets=("common",),
    summary="5 to 50 % of the frames are dropped; each is the last one that was not",
)
def dropped_frames(clip: Input, severity: float, rng: np.random.Generator) -> Input:
    """Drop frames, but never the first; those of a severity are dropped at all higher ones."""
    kept = rng.random(len(clip)) >= at_severity(DROPPED_SHARES, severity)
    kept[0] = True
    return np.asarray(clip[np.maximum.accumulate(np.where(kept, np.arange(len(clip)), 0))])


@condition(
    "low-frame-rate",
    domain="frames",
    sets=("common",),
    summary="a camera with fewer frames a second, 4/5 to 1/4; each is held until the next",
)
def low_frame_rate(clip: Input, severity: float, _rng: np.random.Generator) -> Input:
    """Hold frames."""
    held = at_severity(SLOWNESS, severity)
    taken = np.floor(np.floor(np.arange(len(clip)) / held) * held).astype(np.intp)
    return np.asarray(clip[taken])
