"""Changes in time: frames that were lost or came too early, and a camera that shakes."""

from __future__ import annotations

import numpy as np

from edgeflare_operators.operator_registry import Sample, operator

MOST_SHIFT = 2
"""Pixels by which a shaking camera moves a frame, each way, at most."""


@operator("dropped-frame", domain="frames")
def dropped_frame(clip: Sample, rng: np.random.Generator) -> Sample:
    """Lose a frame: the one before it is there twice. The first one is never lost."""
    mutant: Sample = clip.copy()
    if len(clip) > 1:
        lost = int(rng.integers(1, len(clip)))
        mutant[lost] = clip[lost - 1]
    return mutant


@operator("swapped-frames", domain="frames")
def swapped_frames(clip: Sample, rng: np.random.Generator) -> Sample:
    """Swap two neighbouring frames, as packets that arrive in another order."""
    mutant: Sample = clip.copy()
    if len(clip) > 1:
        first = int(rng.integers(len(clip) - 1))
        mutant[[first, first + 1]] = clip[[first + 1, first]]
    return mutant


@operator("jitter", domain="frames")
def jitter(clip: Sample, rng: np.random.Generator) -> Sample:
    """Move each frame by up to `MOST_SHIFT` pixels each way; pixels at the edges are repeated."""
    _, height, width, _ = clip.shape
    mutant: Sample = clip.copy()
    shifts = rng.integers(-MOST_SHIFT, MOST_SHIFT + 1, size=(len(clip), 2)).tolist()
    for place, (down, right) in enumerate(shifts):
        rows = np.clip(np.arange(height) - down, 0, height - 1)
        columns = np.clip(np.arange(width) - right, 0, width - 1)
        mutant[place] = clip[place][rows][:, columns]
    return mutant
