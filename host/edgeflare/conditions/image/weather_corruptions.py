"""The weather among the common corruptions (Hendrycks and Dietterich 2019)."""

from __future__ import annotations

import math
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.conditions.condition import condition
from edgeflare.conditions.image.image_filters import smeared, smoothed, zoomed
from edgeflare.conditions.image.severity_parameters import (
    SMALL_SIDE,
    Image,
    Real,
    SeverityParameters,
    as_channels,
    gray_levels,
    on_colours,
    one_parameter,
    whole,
)

# Mean and standard deviation of the liquid, sigma of its smoothing in pixels, the least that is a
# drop, how strong it is (of mud: sigma of its edge in pixels), and 0 for water or 1 for mud.
SPATTER = SeverityParameters(
    (
        (0.62, 0.1, 0.7, 0.7, 0.5, 0),
        (0.65, 0.1, 0.8, 0.7, 0.5, 0),
        (0.65, 0.3, 1, 0.69, 0.5, 0),
        (0.65, 0.1, 0.7, 0.69, 0.6, 1),
        (0.65, 0.1, 0.5, 0.68, 0.6, 1),
    ),
    (
        (0.65, 0.3, 4, 0.69, 0.6, 0),
        (0.65, 0.3, 3, 0.68, 0.6, 0),
        (0.65, 0.3, 2, 0.68, 0.5, 0),
        (0.65, 0.3, 1, 0.65, 1.5, 1),
        (0.67, 0.4, 1, 0.65, 1.5, 1),
    ),
)

WATER = np.array((175, 238, 238), np.float32)
"""Pale turquoise, RGB."""
MUD = np.array((63, 42, 20), np.float32)
"""Brown, RGB."""
LEAST_MUD = 0.8
"""Thinner mud is not seen."""

RELIEF = np.array(((-2, -1, 0), (-1, 1, 1), (0, 1, 2)), np.float64)
"""The filter that lets drops of water look as if lit from one side."""


@condition(
    "spatter",
    domain="image",
    sets=("common", "extra", "weather"),
    summary="drops on the lens, of water up to severity 3 and of mud from 4",
)
def spatter(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Cover parts of an image by drops; the parameters say how many, and of what."""
    parameters = SPATTER.at(image, severity)
    normal = rng.standard_normal(image.shape[:2])
    return on_colours(image, lambda colours: spattered(colours, parameters, normal))


def spattered(colours: Image, parameters: tuple[float, ...], normal: NDArray[np.float64]) -> Image:
    """Return an image with drops.

    Args:
        colours: HWC.
        parameters: a row of `SPATTER`.
        normal: (height, width), from a standard normal distribution.

    """
    mean, deviation, sigma, least, strength, kind = parameters
    liquid = smoothed(mean + deviation * normal, sigma)
    liquid[liquid < least] = 0
    if whole(kind) == 0:
        wet = strength * _water(liquid)
        return gray_levels(colours + wet[..., np.newaxis] * as_channels(WATER, colours.shape[2]))
    mud = smoothed((liquid > least).astype(np.float32), strength)
    mud = np.where(mud < LEAST_MUD, 0, mud)[..., np.newaxis]
    return gray_levels(colours * (1 - mud) + mud * as_channels(MUD, colours.shape[2]))


def _water(liquid: NDArray[np.float64]) -> Real:
    """Return how strongly drops shine, from 0 to 1: (height, width)."""
    levels = np.clip(liquid * 255, 0, 255).astype(np.uint8)
    distance = cv2.distanceTransform(255 - cv2.Canny(levels, 50, 150), cv2.DIST_L2, 5)
    near: Any = cv2.blur(np.minimum(distance, 20), (3, 3)).astype(np.uint8)
    relief = cv2.filter2D(cv2.equalizeHist(near), cv2.CV_8U, RELIEF)
    shine = levels * cv2.blur(relief, (3, 3)).astype(np.float32)
    strongest = shine.max()
    return np.asarray(shine / strongest if strongest > 0 else shine, np.float32)


_FIRST_DISPLACEMENT = 100.0
"""Displacements of ImageNet-C are its square at the coarsest grid, in units that do not matter."""

FULL = 1.0
"""Pitch for large images: a pixel of the texture for each pixel of the image."""
FINE = 5.0
"""Pitch for small images: ImageNet-C shrinks its pictures of frost to a fifth for CIFAR-10-C."""

# Gray levels of red, green and blue. All are measured on crops of the five pictures of frost that
# ImageNet-C draws from: their mean, how far the means of crops differ, and how far pixels differ
# from the mean of their crop.
_MEAN = np.array((143.4, 164.6, 176.5), np.float32)
_BETWEEN = np.array((50.5, 35.3, 33.7), np.float32)
_WITHIN = np.array((25.9, 24.5, 24.7), np.float32)
_CONTRASTS = (0.5, 1.5)
"""Some panes have twice the contrast of others and more; factors of `_WITHIN`, of root mean
square 1."""

# Side of the cells in pixels of the full texture, and their share of the variance: as differences
# of pixels at these distances grow in the pictures.
_PATCHES = ((4.0, 0.11), (8.0, 0.10), (16.0, 0.09), (32.0, 0.08), (64.0, 0.08), (128.0, 0.09))
_NEEDLES = 0.45
"""The needles' share of the variance."""
_NEEDLE_LENGTH = 9.0
"""Pixels of the full texture."""

_LINEAR_VARIANCE = 4 / 9
"""What interpolating white noise linearly along both axes leaves of its variance, on average."""


# Mean and standard deviation of the layer, its enlargement, the least that is a flake, radius and
# sigma of the flakes' motion in pixels, and the share of the scene that does not get paler.
SNOW = SeverityParameters(
    (
        (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    ),
    (
        (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
        (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
        (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
        (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
        (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    ),
)
# Shares of the image and of the frost in their sum.
FROST = SeverityParameters(
    ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)),
    ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
)
# Share of the fog, and how smooth it is (`plasma`).
FOG = SeverityParameters(
    ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
)
# What is added to the value of the colour, as a share of the range of gray levels.
BRIGHTNESS = one_parameter((0.05, 0.1, 0.15, 0.2, 0.3), (0.1, 0.2, 0.3, 0.4, 0.5))

SNOW_ANGLES = (-135.0, -45.0)
"""Degrees between which flakes fall."""


@condition(
    "snow",
    domain="image",
    sets=("common", "weather"),
    summary="flakes that fall, and the pale light of a day on which it snows",
)
def snow(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Make the scene paler and add flakes, smeared in a random direction of falling."""
    parameters = SNOW.at(image, severity)
    normal = rng.standard_normal(image.shape[:2], np.float32)
    angle = rng.uniform(*SNOW_ANGLES)
    return on_colours(image, lambda colours: snowed(colours, parameters, normal, angle))


@condition(
    "frost",
    domain="image",
    sets=("common", "weather"),
    summary="the view through a pane with crystals of ice",
)
def frost(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Add a texture of ice; the parameters are the shares of image and ice."""
    share, frost_share = FROST.at(image, severity)
    pitch = FINE if min(image.shape[:2]) <= SMALL_SIDE else FULL
    texture = frost_texture(image.shape[0], image.shape[1], pitch, rng)
    return on_colours(image, lambda colours: frosted(colours, share, frost_share, texture))


@condition(
    "fog",
    domain="image",
    sets=("common", "weather"),
    summary="clouds of fog, denser in some places than in others",
)
def fog(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Add a fractal field; the parameters are its share and its smoothness."""
    share, decay = FOG.at(image, severity)
    side = plasma_side(image.shape[0], image.shape[1])
    uniform = rng.random(side * side - 1, np.float32) * 2 - 1
    return on_colours(image, lambda colours: fogged(colours, share, plasma(uniform, decay)))


@condition(
    "brightness",
    domain="image",
    sets=("common", "weather"),
    summary="more light: the value of every colour is raised, its hue and saturation stay",
)
def brightness(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Raise the value in the sense of HSV; the parameter is by how much."""
    del rng
    (raised,) = BRIGHTNESS.at(image, severity)
    return on_colours(image, lambda colours: brightened(colours, raised))


def snowed(colours: Image, parameters: tuple[float, ...], normal: Real, angle: float) -> Image:
    """Return an image in snow.

    Args:
        colours: HWC.
        parameters: a row of `SNOW`.
        normal: (height, width), from a standard normal distribution.
        angle: angle of the flakes' motion, in degrees, as `smeared` takes it.

    """
    mean, deviation, factor, least, radius, sigma, kept = parameters
    layer = zoomed((mean + deviation * normal).astype(np.float32)[..., np.newaxis], factor)
    flakes = gray_levels(255 * np.where(layer < least, 0, layer))
    falling = smeared(flakes, radius, sigma, angle).astype(np.float32)
    values = colours.astype(np.float32)
    gray = values
    if colours.shape[2] == 3:
        gray = np.asarray(cv2.cvtColor(values, cv2.COLOR_RGB2GRAY), np.float32)[..., np.newaxis]
    pale = np.maximum(values, gray * 1.5 + 127.5)
    scene = kept * values + (1 - kept) * pale
    return gray_levels(scene + falling + falling[::-1, ::-1])


def frosted(colours: Image, share: float, frost_share: float, texture: Real) -> Image:
    """Return the sum of shares of an image, HWC, and of a texture, (height, width, 3)."""
    return gray_levels(share * colours + frost_share * as_channels(texture, colours.shape[2]))


def fogged(colours: Image, share: float, field: Real) -> Image:
    """Return an image in fog, as bright as the image's brightest entry.

    Args:
        colours: HWC.
        share: weight of the fog; that of the image is 1.
        field: field at least as high and as wide as the image, from 0 to 1.

    """
    brightest = float(colours.max()) / 255
    if brightest == 0:
        return np.array(colours)
    height, width = colours.shape[:2]
    mixed = colours + (255 * share) * field[:height, :width, np.newaxis]
    return gray_levels(mixed * np.float32(brightest / (brightest + share)))


def brightened(colours: Image, raised: float) -> Image:
    """Return an image, HWC, whose greatest channel is raised by a share of 255, and no further.

    The other channels grow in proportion, so that hue and saturation stay. Black becomes gray.
    """
    value = colours.max(axis=2, keepdims=True).astype(np.float32)
    higher = np.minimum(value + np.float32(255 * raised), 255)
    grown = colours * (higher / np.maximum(value, 1))
    return gray_levels(np.where(value > 0, grown, higher))


def frost_texture(height: int, width: int, pitch: float, rng: np.random.Generator) -> Real:
    """Return a texture of ice: patches of all sizes, and needles at angles of 60 degrees.

    Args:
        height: height in pixels.
        width: width in pixels.
        pitch: how many pixels of the full texture there are for each pixel, in each direction.
        rng: generator from which all is drawn.

    Returns:
        Gray levels from 0 to 255, (height, width, 3), in RGB.

    """
    # Uniform with a standard deviation of 1, so that no pane is brighter than white.
    tone = rng.uniform(-math.sqrt(3), math.sqrt(3))
    contrast = rng.uniform(*_CONTRASTS) / math.sqrt(1 + (_CONTRASTS[1] - _CONTRASTS[0]) ** 2 / 12)
    field = _needles(height, width, pitch, rng) * math.sqrt(_NEEDLES)
    for side, share in _PATCHES:
        field += _patches(height, width, side / pitch, rng) * math.sqrt(share)
    base = _MEAN + np.float32(tone) * _BETWEEN
    spread = np.float32(contrast) * _WITHIN
    return np.asarray(np.clip(base + field[..., np.newaxis] * spread, 0, 255), np.float32)


def _patches(height: int, width: int, side: float, rng: np.random.Generator) -> Real:
    """Return a field of variance 1 on average whose patches have so many pixels a side."""
    if side <= 1:
        return rng.standard_normal((height, width), np.float32)
    rows, columns = math.ceil(height / side) + 2, math.ceil(width / side) + 2
    coarse = rng.standard_normal((rows, columns), np.float32)
    down, right = rng.uniform(0, side, 2)
    places = np.array(((1 / side, 0, right / side), (0, 1 / side, down / side)))
    field = cv2.warpAffine(
        coarse, places, (width, height), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    )
    return np.asarray(field / math.sqrt(_LINEAR_VARIANCE), np.float32)


def _needles(height: int, width: int, pitch: float, rng: np.random.Generator) -> Real:
    """Return a field of variance 1 made of short lines in three directions."""
    turned = rng.uniform(0, math.pi / 3)
    field = np.zeros((height, width), np.float32)
    for direction in range(3):
        line = _line(_NEEDLE_LENGTH / pitch, turned + direction * math.pi / 3)
        reach = len(line) // 2
        white = rng.standard_normal((height + 2 * reach, width + 2 * reach), np.float32)
        drawn = cv2.filter2D(white, -1, line)[reach : reach + height, reach : reach + width]
        field += drawn / np.float32(math.sqrt(3 * float((line**2).sum())))
    return field


def _line(length: float, angle: float) -> Real:
    """Return a kernel, odd on both sides, of a line through its middle."""
    reach = math.ceil(length / 2)
    line = np.zeros((2 * reach + 1, 2 * reach + 1), np.float32)
    across, down = math.cos(angle), math.sin(angle)
    for step in np.linspace(-length / 2, length / 2, 4 * reach + 1):
        line[reach + round(step * down), reach + round(step * across)] = 1
    return line


def plasma_side(height: int, width: int) -> int:
    """Return the side of the smallest field that covers an image: a power of two."""
    return 1 << (max(height, width, 2) - 1).bit_length()


def plasma(uniform: Real, decay: float) -> Real:
    """Return a periodic field, (side, side), from 0 to 1.

    Each grid is refined by points in its middle: first those of squares, then those of diamonds.
    A point is the mean of the four around it, displaced at random.

    Args:
        uniform: side² - 1 numbers, uniform in [-1, 1), where `side` is a power of two.
        decay: its square divides displacements each time the grid gets twice as fine.

    """
    side = round((len(uniform) + 1) ** 0.5)
    field = np.zeros((side, side), np.float64)
    displacement = _FIRST_DISPLACEMENT
    step, used = side, 0
    while step >= 2:
        half, count = step // 2, side // step
        fresh = uniform[used : used + 3 * count**2].reshape(3, count, count) * displacement**2
        used += 3 * count**2
        corners = field[::step, ::step]
        rows = corners + np.roll(corners, -1, axis=0)
        middles = (rows + np.roll(rows, -1, axis=1)) / 4 + fresh[0]
        field[half::step, half::step] = middles
        across = corners + np.roll(corners, -1, axis=1)
        field[::step, half::step] = (middles + np.roll(middles, 1, axis=0) + across) / 4 + fresh[1]
        down = corners + np.roll(corners, -1, axis=0)
        field[half::step, ::step] = (middles + np.roll(middles, 1, axis=1) + down) / 4 + fresh[2]
        step = half
        displacement /= decay
    field -= field.min()
    return np.asarray(field / field.max(), np.float32)
