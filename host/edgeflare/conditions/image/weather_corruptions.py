"""The weather among the common corruptions (Hendrycks and Dietterich 2019)."""

from __future__ import annotations

import cv2
import numpy as np

from edgeflare.conditions.condition import condition
from edgeflare.conditions.image.centre_zoom import zoomed
from edgeflare.conditions.image.frost_texture import FINE, FULL, frost_texture
from edgeflare.conditions.image.gray_levels import (
    Image,
    Real,
    as_channels,
    gray_levels,
    on_colours,
)
from edgeflare.conditions.image.motion_smear import smeared
from edgeflare.conditions.image.plasma import plasma, plasma_side
from edgeflare.conditions.image.severity_parameters import (
    SMALL_SIDE,
    SeverityParameters,
    one_parameter,
)

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
def snow(one: Image, severity: float, rng: np.random.Generator) -> Image:
    """Make the scene paler and add flakes, smeared in a random direction of falling."""
    parameters = SNOW.at(one, severity)
    normal = rng.standard_normal(one.shape[:2], np.float32)
    angle = rng.uniform(*SNOW_ANGLES)
    return on_colours(one, lambda colours: snowed(colours, parameters, normal, angle))


@condition(
    "frost",
    domain="image",
    sets=("common", "weather"),
    summary="the view through a pane with crystals of ice",
)
def frost(one: Image, severity: float, rng: np.random.Generator) -> Image:
    """Add a texture of ice; the parameters are the shares of image and ice."""
    share, frost_share = FROST.at(one, severity)
    pitch = FINE if min(one.shape[:2]) <= SMALL_SIDE else FULL
    texture = frost_texture(one.shape[0], one.shape[1], pitch, rng)
    return on_colours(one, lambda colours: frosted(colours, share, frost_share, texture))


@condition(
    "fog",
    domain="image",
    sets=("common", "weather"),
    summary="clouds of fog, denser in some places than in others",
)
def fog(one: Image, severity: float, rng: np.random.Generator) -> Image:
    """Add a fractal field; the parameters are its share and its smoothness."""
    share, decay = FOG.at(one, severity)
    side = plasma_side(one.shape[0], one.shape[1])
    uniform = rng.random(side * side - 1, np.float32) * 2 - 1
    return on_colours(one, lambda colours: fogged(colours, share, plasma(uniform, decay)))


@condition(
    "brightness",
    domain="image",
    sets=("common", "weather"),
    summary="more light: the value of every colour is raised, its hue and saturation stay",
)
def brightness(one: Image, severity: float, rng: np.random.Generator) -> Image:
    """Raise the value in the sense of HSV; the parameter is by how much."""
    del rng
    (raised,) = BRIGHTNESS.at(one, severity)
    return on_colours(one, lambda colours: brightened(colours, raised))


def snowed(colours: Image, parameters: tuple[float, ...], normal: Real, angle: float) -> Image:
    """Return an image in snow.

    Args:
        colours: HWC.
        parameters: a row of `SNOW`.
        normal: (height, width), from a standard normal distribution.
        angle: of the flakes' motion, in degrees, as `smeared` takes it.

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
        share: of the fog; that of the image is 1.
        field: at least as high and as wide as the image, from 0 to 1.

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
