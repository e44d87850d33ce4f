"""What cameras do, and what stands between a camera and a model."""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.conditions.condition import condition
from edgeflare.conditions.image.digital_corruptions import through_jpeg
from edgeflare.conditions.image.severity_parameters import (
    Image,
    gray_levels,
    on_colours,
    one_parameter,
    whole,
)

# Mired, millionths of 1/kelvin: equal steps look equal, and about 5 are seen side by side. 100
# take daylight of 6,500 K for light of 3,940 K, late in the evening, or of 18,600 K, in the shade.
MIRED = (10.0, 25.0, 45.0, 70.0, 100.0)
WHITE_BALANCE = one_parameter(MIRED, MIRED)
# 1.2 lies between displays of gamma 1.8 and 2.2; 2.2 is an image that was never encoded, or twice.
GAMMAS = (1.1, 1.2, 1.4, 1.8, 2.2)
GAMMA = one_parameter(GAMMAS, GAMMAS)
# From what cameras store to what messengers send, whatever the size of the image.
QUALITIES = (95.0, 85.0, 70.0, 50.0, 30.0)
JPEG_QUALITY = one_parameter(QUALITIES, QUALITIES)
# The side on the way, as a share. A sensor has more pixels than the model takes: 0.9 changes little
# but the filter, one half is an image of a quarter of the pixels, such as a thumbnail.
SHARES = (0.9, 0.8, 0.7, 0.6, 0.5)
RESAMPLING = one_parameter(SHARES, SHARES)
# Pixels. One is what an odd side or another rounding of a crop makes; the last are an eighth of 32
# and a fourteenth of 224, as by a hand that is not steady.
SHIFT = one_parameter((0.5, 1, 2, 3, 4), (1, 2, 4, 8, 16))
# Share of the bars in the image: a quarter is a picture of 4:3 in a square one, a third one of
# 3:2, and 7/16 one of 16:9.
BARS = (0.0625, 0.125, 0.25, 1 / 3, 0.4375)
LETTERBOXING = one_parameter(BARS, BARS)
# Share of the gray levels that is left. Light is about their power of 2.2, so that these are 0.9,
# 1.6, 2.5, 3.8 and 5.1 stops less of it.
EXPOSURES = (0.75, 0.6, 0.45, 0.3, 0.2)
LOW_LIGHT = one_parameter(EXPOSURES, EXPOSURES)

DAYLIGHT = 6500.0
"""Kelvin."""
WAVELENGTHS = (600e-9, 550e-9, 450e-9)
"""Metres: of the light that red, green and blue stand for."""
SECOND_RADIATION_CONSTANT = 1.438777e-2
"""Metres times kelvin, of Planck's law."""

DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1))
"""Right, left, down, up."""

FILTERS = (cv2.INTER_NEAREST, cv2.INTER_LINEAR, cv2.INTER_CUBIC, cv2.INTER_AREA, cv2.INTER_LANCZOS4)
"""What image libraries shrink and enlarge with, each as likely."""


@condition(
    "white-balance",
    domain="image",
    sets=("camera",),
    summary="a camera that takes the light for warmer or colder than it is; gray images stay",
)
def white_balance(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Make the image warmer or colder; the parameter is by how many mired."""
    (mired,) = WHITE_BALANCE.at(image, severity)
    signed = mired * rng.choice((-1, 1))
    return on_colours(image, lambda colours: balanced(colours, signed))


@condition(
    "gamma",
    domain="image",
    sets=("camera",),
    summary="gray levels encoded for another display: middle ones darker, or lighter",
)
def gamma(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Raise gray levels to a power; the parameter is the power, or its inverse."""
    (power,) = GAMMA.at(image, severity)
    signed = power ** rng.choice((-1, 1))
    return on_colours(
        image, lambda colours: np.take(_encoded(np.arange(256) / 255, signed), colours)
    )


@condition(
    "low-light",
    domain="image",
    sets=("camera",),
    summary="a scene with little light, which no longer exposure makes up for",
)
def low_light(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Darken the image; the parameter is the share of the gray levels that is left."""
    del rng
    (share,) = LOW_LIGHT.at(image, severity)
    levels = gray_levels(share * np.arange(256) + 0.5)
    return on_colours(image, lambda colours: np.take(levels, colours))


@condition(
    "jpeg-quality",
    domain="image",
    sets=("camera",),
    summary="JPEG as cameras and messengers use it, whatever the size of the image",
)
def jpeg_quality(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Encode and decode; the parameter is the quality."""
    del rng
    (quality,) = JPEG_QUALITY.at(image, severity)
    return on_colours(image, lambda colours: through_jpeg(colours, whole(quality)))


@condition(
    "resampling",
    domain="image",
    sets=("camera",),
    summary="another size on the way to the model, by filters of other image libraries",
)
def resampling(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Shrink and enlarge by two filters; the parameter is the smaller side, as a share."""
    (share,) = RESAMPLING.at(image, severity)
    shrinking, enlarging = (FILTERS[index] for index in rng.integers(len(FILTERS), size=2))
    return on_colours(image, lambda colours: resampled(colours, share, shrinking, enlarging))


@condition(
    "shift",
    domain="image",
    sets=("camera",),
    summary="the scene some pixels further to one side; the border continues",
)
def shift(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Move the image to one of four sides; the parameter is by how many pixels."""
    (distance,) = SHIFT.at(image, severity)
    right, down = DIRECTIONS[rng.integers(len(DIRECTIONS))]
    return on_colours(image, lambda colours: shifted(colours, right * distance, down * distance))


@condition(
    "letterboxing",
    domain="image",
    sets=("camera",),
    summary="the whole picture squeezed along one side, between two black bars",
)
def letterboxing(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Squeeze one side and add bars; the parameter is the share of the bars."""
    (share,) = LETTERBOXING.at(image, severity)
    axis = int(rng.integers(2))
    return on_colours(image, lambda colours: letterboxed(colours, share, axis))


def balanced(colours: Image, mired: float) -> Image:
    """Return an image as if lit by another light; one of a single channel is returned as it is.

    Linear light is multiplied by what Planck's law has for each wavelength, green staying.

    Args:
        colours: HWC.
        mired: difference of the light from daylight of 6,500 K, in mired; warmer if positive.

    """
    if colours.shape[2] == 1:
        return np.array(colours)
    ratios = [_radiance(wave, mired) / _radiance(wave, 0) for wave in WAVELENGTHS]
    # A power of 2.2 is near the encoding of sRGB and of cameras.
    levels = np.linspace(0, 1, 256) ** 2.2
    channels = [
        np.take(_encoded(levels * (ratio / ratios[1]), 1 / 2.2), colours[..., index])
        for index, ratio in enumerate(ratios)
    ]
    return np.stack(channels, axis=2)


def resampled(colours: Image, share: float, shrinking: int, enlarging: int) -> Image:
    """Return an image, HWC, shrunk to a share of its sides and enlarged, by filters of OpenCV."""
    height, width = colours.shape[:2]
    smaller = (max(whole(width * share), 1), max(whole(height * share), 1))
    small = cv2.resize(colours, smaller, interpolation=shrinking)
    large = cv2.resize(small, (width, height), interpolation=enlarging)
    return np.asarray(large, np.uint8).reshape(colours.shape)


def shifted(colours: Image, right: float, down: float) -> Image:
    """Return an image, HWC, moved by pixels; parts of a pixel are interpolated linearly."""
    values = colours.astype(np.float32)
    for axis, distance in ((1, right), (0, down)):
        side = colours.shape[axis]
        floor = math.floor(-distance)
        share = np.float32(-distance - floor)
        places = np.arange(side) + floor
        before = values.take(np.clip(places, 0, side - 1), axis=axis)
        after = values.take(np.clip(places + 1, 0, side - 1), axis=axis)
        values = before + (after - before) * share
    return gray_levels(values + np.float32(0.5))


def letterboxed(colours: Image, share: float, axis: int) -> Image:
    """Return an image, HWC, squeezed along an axis; black bars have a share of it, half each."""
    sides = list(colours.shape[:2])
    side = sides[axis]
    sides[axis] = max(whole(side * (1 - share)), 1)
    squeezed = cv2.resize(colours, (sides[1], sides[0]), interpolation=cv2.INTER_AREA)
    before = (side - sides[axis]) // 2
    after = side - sides[axis] - before
    bars = [(before, after) if each == axis else (0, 0) for each in (0, 1)]
    picture = np.asarray(squeezed, np.uint8).reshape(*sides, -1)
    return np.pad(picture, (*bars, (0, 0)))


def _radiance(wavelength: float, mired: float) -> float:
    kelvin = 1e6 / (1e6 / DAYLIGHT + mired)
    return 1 / math.expm1(SECOND_RADIATION_CONSTANT / (wavelength * kelvin))


def _encoded(light: NDArray[np.float64], power: float) -> Image:
    """Return the gray levels of light from 0 to 1, raised to a power and rounded."""
    return gray_levels(255 * light**power + 0.5)
