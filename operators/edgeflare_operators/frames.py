"""Operators on clips: (frames, H, W, C), uint8, with 1, 3 or 4 channels.

Those of the domain `image` go by the same names here; what else there is concerns time.
"""

from __future__ import annotations

import numpy as np

from edgeflare_operators import image
from edgeflare_operators.operator_registry import MutationOperator, Sample, operator

_ALL_FRAMES = 0.5
"""Probability that all frames are mutated alike, as by dirt or light on the lens; otherwise one is,
as by a disturbed transmission."""

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


def _framewise(on_image: MutationOperator) -> MutationOperator:
    """Return the operator on clips that mutates frames as another one mutates images.

    All frames get the same draws, so noise is the same on each.
    """

    @operator(on_image.name, domain="frames")
    def on_frames(clip: Sample, rng: np.random.Generator) -> Sample:
        mutant: Sample = clip.copy()
        if rng.random() < _ALL_FRAMES:
            draws = int(rng.integers(1 << 63))
            for place, frame in enumerate(clip):
                mutant[place] = on_image(frame, np.random.default_rng(draws))
        else:
            place = int(rng.integers(len(clip)))
            mutant[place] = on_image(clip[place], rng)
        return mutant

    return on_frames


average_blur = _framewise(image.average_blur)
gaussian_blur = _framewise(image.gaussian_blur)
gaussian_noise = _framewise(image.gaussian_noise)
median_blur = _framewise(image.median_blur)
multiplicative_noise = _framewise(image.multiplicative_noise)
pixel_change = _framewise(image.pixel_change)
salt_and_pepper = _framewise(image.salt_and_pepper)
