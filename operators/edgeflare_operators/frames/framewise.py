"""The operators on images, applied to all frames of a clip alike or to one of them."""

from __future__ import annotations

import numpy as np

from edgeflare_operators import image
from edgeflare_operators.operator_registry import MutationOperator, Sample, operator

ALL_FRAMES = 0.5
"""Probability that all frames are mutated alike, as by dirt or light on the lens; otherwise one is,
as by a disturbed transmission."""


def framewise(on_image: MutationOperator) -> MutationOperator:
    """Return the operator on clips that mutates frames as another one mutates images.

    All frames get the same draws, so noise is the same on each.
    """

    @operator(on_image.name, domain="frames")
    def on_frames(clip: Sample, rng: np.random.Generator) -> Sample:
        mutant: Sample = clip.copy()
        if rng.random() < ALL_FRAMES:
            draws = int(rng.integers(1 << 63))
            for place, frame in enumerate(clip):
                mutant[place] = on_image(frame, np.random.default_rng(draws))
        else:
            place = int(rng.integers(len(clip)))
            mutant[place] = on_image(clip[place], rng)
        return mutant

    return on_frames


average_blur = framewise(image.average_blur)
gaussian_blur = framewise(image.gaussian_blur)
gaussian_noise = framewise(image.gaussian_noise)
median_blur = framewise(image.median_blur)
multiplicative_noise = framewise(image.multiplicative_noise)
pixel_change = framewise(image.pixel_change)
salt_and_pepper = framewise(image.salt_and_pepper)
