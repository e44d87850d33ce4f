"""Noise on every entry. The noisy image is real-valued; making it uint8 again is a step of its own.

Ours rounds and clips, as DFlare's paper says (§4.4, "we clip the values of pixels to [0, 255]").
The paper's published code truncates and wraps around; `wrapped` is that, for comparison only.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from edgeflare_operators.operator_registry import Image, MutationOperator, operator

Real = NDArray[np.float64]

SIGMA = math.sqrt(0.1)
"""Standard deviation of the Gaussian noise, in gray levels."""


@operator("gaussian-noise")
def gaussian_noise(image: Image, rng: np.random.Generator) -> Image:
    """Add Gaussian noise of `SIGMA` gray levels to every entry."""
    return clipped(with_gaussian_noise(image, rng))


@operator("multiplicative-noise")
def multiplicative_noise(image: Image, rng: np.random.Generator) -> Image:
    """Add to every entry a random share of itself; see `with_multiplicative_noise`."""
    return clipped(with_multiplicative_noise(image, rng))


def _wrapping_gaussian_noise(image: Image, rng: np.random.Generator) -> Image:
    return wrapped(with_gaussian_noise(image, rng))


def _wrapping_multiplicative_noise(image: Image, rng: np.random.Generator) -> Image:
    return wrapped(with_multiplicative_noise(image, rng))


# Not registered: no search but `dflare-published` should draw them.
wrapping_gaussian_noise = MutationOperator(
    "wrapping-gaussian-noise", "image", _wrapping_gaussian_noise
)
wrapping_multiplicative_noise = MutationOperator(
    "wrapping-multiplicative-noise", "image", _wrapping_multiplicative_noise
)


def with_gaussian_noise(image: Image, rng: np.random.Generator) -> Real:
    """Return x + N(0, SIGMA) for every entry x, as it falls: unrounded, unclipped."""
    return image + rng.normal(0.0, SIGMA, image.shape)


def with_multiplicative_noise(image: Image, rng: np.random.Generator) -> Real:
    """Return x + x n for every entry x, as it falls.

    n is normal, its mean drawn from U(-0.5, 0.5) and its variance from U(0, 0.05) for each image.
    """
    mean = rng.uniform(-0.5, 0.5)
    sigma = math.sqrt(rng.uniform(0.0, 0.05))
    return image + image * rng.normal(mean, sigma, image.shape)


def clipped(real: Real) -> Image:
    """Round to the nearest gray level and clip to 0 ... 255."""
    return np.clip(np.rint(real), 0, 255).astype(np.uint8)


def wrapped(real: Real) -> Image:
    """Truncate towards zero and keep the value modulo 256.

    This is what C compilers on x86 make of the published code's direct cast from float to uint8,
    which the language leaves undefined outside 0 ... 255; by way of int64 it is defined.
    """
    return (real.astype(np.int64) & 0xFF).astype(np.uint8)
