"""The noises among the common corruptions (Hendrycks and Dietterich 2019)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.conditions.condition import condition
from edgeflare.conditions.image.severity_parameters import (
    Image,
    Real,
    gray_levels,
    on_colours,
    one_parameter,
)

# Standard deviations, as shares of the range of gray levels.
GAUSSIAN = one_parameter((0.04, 0.06, 0.08, 0.09, 0.10), (0.08, 0.12, 0.18, 0.26, 0.38))
# Photons that a white pixel receives.
SHOT = one_parameter((500, 250, 100, 75, 50), (60, 25, 12, 5, 3))
# Shares of the entries that are black or white.
IMPULSE = one_parameter((0.01, 0.02, 0.03, 0.05, 0.07), (0.03, 0.06, 0.09, 0.17, 0.27))
# Standard deviations, as shares of an entry's own gray level.
SPECKLE = one_parameter((0.06, 0.1, 0.12, 0.16, 0.2), (0.15, 0.2, 0.35, 0.45, 0.6))


@condition(
    "gaussian-noise",
    domain="image",
    sets=("common", "noise"),
    summary="Gaussian noise on every channel of every pixel, as a sensor has it in low light",
)
def gaussian_noise(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Add Gaussian noise; its parameter is the standard deviation."""
    (sigma,) = GAUSSIAN.at(image, severity)
    return on_colours(image, lambda colours: with_noise(colours, sigma, _normal(colours, rng)))


@condition(
    "shot-noise",
    domain="image",
    sets=("common", "noise"),
    summary="noise of the discreteness of light, stronger where the image is brighter",
)
def shot_noise(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Count photons; the parameter is how many a white pixel receives."""
    (photons,) = SHOT.at(image, severity)
    return on_colours(
        image, lambda colours: from_photons(rng.poisson(colours * (photons / 255)), photons)
    )


@condition(
    "impulse-noise",
    domain="image",
    sets=("common", "noise"),
    summary="single channels of single pixels black or white, as by errors of bits",
)
def impulse_noise(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Set entries to 0 or 255; the parameter is their share."""
    (share,) = IMPULSE.at(image, severity)
    return on_colours(
        image,
        lambda colours: with_impulses(
            colours, share, rng.random(colours.shape, np.float32), rng.random(colours.shape)
        ),
    )


@condition(
    "speckle-noise",
    domain="image",
    sets=("common", "extra", "noise"),
    summary="noise in proportion to the gray level itself, as radar and ultrasound have it",
)
def speckle_noise(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Add to each entry a random share of itself; the parameter is its standard deviation."""
    (sigma,) = SPECKLE.at(image, severity)
    return on_colours(image, lambda colours: with_speckles(colours, sigma, _normal(colours, rng)))


def with_noise(colours: Image, sigma: float, normal: Real) -> Image:
    """Return x + 255 sigma n for every entry x.

    Args:
        colours: HWC.
        sigma: as a share of the range of gray levels.
        normal: draws from a standard normal distribution, in the shape of `colours`.

    """
    return gray_levels(colours + 255 * sigma * normal)


def from_photons(counts: NDArray[np.integer[Any]], photons: float) -> Image:
    """Return an image of counted photons, (height, width, channels), where `photons` are white."""
    return gray_levels(counts * (255 / photons))


def with_impulses(
    colours: Image, share: float, chosen: NDArray[np.floating[Any]], sign: NDArray[np.floating[Any]]
) -> Image:
    """Return an image with black and white entries.

    Args:
        colours: HWC.
        share: share of entries that are set.
        chosen: draws in the shape of `colours`, uniform in [0, 1); entries of at most `share` are
            set.
        sign: draws likewise: what is set is white where at most one half, and black elsewhere.

    """
    impulses = np.where(sign <= 0.5, np.uint8(255), np.uint8(0))
    return np.where(chosen <= share, impulses, colours)


def with_speckles(colours: Image, sigma: float, normal: Real) -> Image:
    """Return x + x sigma n for every entry x; see `with_noise`."""
    return gray_levels(colours * (1 + sigma * normal))


def _normal(colours: Image, rng: np.random.Generator) -> Real:
    return rng.standard_normal(colours.shape, np.float32)
