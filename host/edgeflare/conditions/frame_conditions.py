"""Conditions of clips, (frames, H, W, C), uint8: what happens to frames in the course of time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare.conditions.condition import at_severity, condition
from edgeflare.core.input_space import Input

NOISES = (4.0, 8.0, 12.0, 18.0, 26.0)
"""Standard deviation of the noise, in gray levels: a small camera by day, to one in the dark."""

FLICKERS = (0.03, 0.06, 0.1, 0.15, 0.25)
"""Standard deviation of the brightness of a frame around 1, as under lamps that flicker with the
mains, or of an exposure that hunts."""

SHAKES = (0.005, 0.01, 0.02, 0.035, 0.05)
"""Standard deviation of where a shaking camera points, as a share of the height and the width."""


@condition(
    "frame-noise",
    domain="frames",
    sets=("common", "noise"),
    summary="Gaussian noise of 4 to 26 gray levels, another one in each frame",
)
def frame_noise(clip: Input, severity: float, rng: np.random.Generator) -> Input:
    """Add noise to every value; an alpha channel stays as it is."""
    return _coloured(clip, clip + at_severity(NOISES, severity) * rng.normal(size=clip.shape))


@condition(
    "flicker",
    domain="frames",
    sets=("common",),
    summary="frames brighter or darker than others, by a standard deviation of 3 to 25 %",
)
def flicker(clip: Input, severity: float, rng: np.random.Generator) -> Input:
    """Multiply each frame by a factor, 0 at least; an alpha channel stays as it is."""
    change = at_severity(FLICKERS, severity) * rng.normal(size=len(clip))
    factors = np.maximum(1.0 + change, 0.0).reshape(-1, 1, 1, 1)
    return _coloured(clip, clip * factors)


@condition(
    "camera-shake",
    domain="frames",
    sets=("common",),
    summary="frames displaced by a standard deviation of 0.5 to 5 % of their size, edges repeated",
)
def camera_shake(clip: Input, severity: float, rng: np.random.Generator) -> Input:
    """Displace each frame by whole pixels."""
    _, height, width, _ = clip.shape
    drawn = at_severity(SHAKES, severity) * rng.normal(size=(len(clip), 2))
    shifts = np.rint(drawn * (height, width)).astype(np.int64)
    rows = np.clip(np.arange(height) - shifts[:, :1], 0, height - 1)
    columns = np.clip(np.arange(width) - shifts[:, 1:], 0, width - 1)
    frames = np.arange(len(clip))[:, np.newaxis, np.newaxis]
    return np.asarray(clip[frames, rows[:, :, np.newaxis], columns[:, np.newaxis, :]])


def _coloured(clip: Input, real: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return a clip with other values, rounded, but for its alpha channel, if it has one."""
    changed = np.clip(np.rint(real), 0, 255).astype(np.uint8)
    if clip.shape[3] == 4:
        changed[..., 3] = clip[..., 3]
    return changed


DROPPED_SHARES = (0.05, 0.1, 0.2, 0.3, 0.5)
"""Share of the frames that are dropped, as by a processor that does not keep up."""

SLOWNESS = (1.25, 1.5, 2.0, 3.0, 4.0)
"""Frames over which one is held: of 30 frames a second 24, 20, 15, 10 and 7.5 are left."""


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
