"""Spatter on the lens: drops of water, and of mud (Hendrycks and Dietterich 2019)."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.conditions.condition import condition
from edgeflare.conditions.image.image_filters import smoothed
from edgeflare.conditions.image.severity_parameters import (
    Image,
    Real,
    SeverityParameters,
    as_channels,
    gray_levels,
    on_colours,
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
def spatter(one: Image, severity: float, rng: np.random.Generator) -> Image:
    """Cover parts of an image by drops; the parameters say how many, and of what."""
    parameters = SPATTER.at(one, severity)
    normal = rng.standard_normal(one.shape[:2])
    return on_colours(one, lambda colours: spattered(colours, parameters, normal))


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
