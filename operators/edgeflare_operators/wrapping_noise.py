"""Noise on images as the published code of DFlare adds it: beyond 0 and 255 the values wrap.

No entry point names this module: no search but `dflare-published` should draw these operators.
"""

from __future__ import annotations

import numpy as np

from edgeflare_operators.image import Real, with_gaussian_noise, with_multiplicative_noise
from edgeflare_operators.operator_registry import Image, MutationOperator


def _wrapping_gaussian_noise(image: Image, rng: np.random.Generator) -> Image:
    return wrapped(with_gaussian_noise(image, rng))


def _wrapping_multiplicative_noise(image: Image, rng: np.random.Generator) -> Image:
    return wrapped(with_multiplicative_noise(image, rng))


wrapping_gaussian_noise = MutationOperator(
    "wrapping-gaussian-noise", "image", _wrapping_gaussian_noise
)
wrapping_multiplicative_noise = MutationOperator(
    "wrapping-multiplicative-noise", "image", _wrapping_multiplicative_noise
)


def wrapped(real: Real) -> Image:
    """Truncate towards zero and keep the value modulo 256.

    This is what C compilers on x86 make of the published code's direct cast from float to uint8,
    which the language leaves undefined outside 0 ... 255; by way of int64 it is defined.
    """
    return (real.astype(np.int64) & 0xFF).astype(np.uint8)
