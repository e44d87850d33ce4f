"""The blurs among the common corruptions (Hendrycks and Dietterich 2019)."""

from __future__ import annotations

import math
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.conditions.condition import condition
from edgeflare.conditions.image.image_filters import smeared, smoothed, smoothed_in_pairs, zoomed
from edgeflare.conditions.image.severity_parameters import (
    Image,
    Real,
    SeverityParameters,
    gray_levels,
    on_colours,
    one_parameter,
    whole,
)

# Radius of the disk and sigma of its smoothing, in pixels.
DEFOCUS = SeverityParameters(
    ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
)
# Sigma in pixels, how far pixels move in pixels, how often.
GLASS = SeverityParameters(
    ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
)
# Half the length of the line and sigma along it, in pixels.
MOTION = SeverityParameters(
    ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
    ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
)
# How many zoom factors there are from 1 on, and how far apart they are.
ZOOM = SeverityParameters(
    ((7, 0.01), (12, 0.01), (16, 0.01), (21, 0.01), (26, 0.01)),
    ((12, 0.01), (16, 0.01), (11, 0.02), (13, 0.02), (11, 0.03)),
)
# Sigma in pixels.
GAUSSIAN_SIGMA = one_parameter((0.4, 0.6, 0.7, 0.8, 1), (1, 2, 3, 4, 6))

LARGEST_ANGLE = 45.0
"""Degrees by which the direction of motion may differ from the horizontal."""


@condition(
    "defocus-blur",
    domain="image",
    sets=("common", "blur"),
    summary="the blur of a lens that is out of focus: every point becomes a disk",
)
def defocus_blur(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Convolve with a disk; the parameters are its radius and the sigma of its edge."""
    del rng
    radius, sigma = DEFOCUS.at(image, severity)
    return on_colours(image, lambda colours: out_of_focus(colours, radius, sigma))


@condition(
    "glass-blur",
    domain="image",
    sets=("common", "blur"),
    summary="the view through frosted glass: neighbouring pixels are mixed up",
)
def glass_blur(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Smooth, move pixels, smooth; the parameters are sigma, the distance, and how often."""
    sigma, distance, times = GLASS.at(image, severity)
    reach = whole(distance)
    moves = rng.integers(-reach, reach, (whole(times), *image.shape[:2], 2))
    return on_colours(image, lambda colours: through_glass(colours, sigma, reach, moves))


@condition(
    "motion-blur",
    domain="image",
    sets=("common", "blur"),
    summary="the blur of a camera that moves in a straight line",
)
def motion_blur(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Smear along a line of random direction; the parameters are its radius and sigma."""
    radius, sigma = MOTION.at(image, severity)
    angle = rng.uniform(-LARGEST_ANGLE, LARGEST_ANGLE)
    return on_colours(image, lambda colours: smeared(colours, radius, sigma, angle))


@condition(
    "zoom-blur",
    domain="image",
    sets=("common", "blur"),
    summary="the blur of a camera that moves towards what it sees",
)
def zoom_blur(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Average views that are zoomed into; the parameters are their count and the step."""
    del rng
    count, step = ZOOM.at(image, severity)
    return on_colours(image, lambda colours: approached(colours, whole(count), step))


@condition(
    "gaussian-blur",
    domain="image",
    sets=("common", "extra", "blur"),
    summary="the blur of a Gaussian mean",
)
def gaussian_blur(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Smooth; the parameter is sigma."""
    del rng
    (sigma,) = GAUSSIAN_SIGMA.at(image, severity)
    return on_colours(
        image, lambda colours: gray_levels(smoothed(colours.astype(np.float32), sigma))
    )


def out_of_focus(colours: Image, radius: float, sigma: float) -> Image:
    """Return an image, HWC, convolved with a disk.

    Args:
        colours: HWC; outside it is reflected at its border's pixels.
        radius: radius of the disk, in pixels.
        sigma: standard deviation of the Gaussian that softens the disk's edge, in pixels.

    """
    values = np.asarray(cv2.filter2D(colours.astype(np.float32), -1, _disk(radius, sigma)))
    return gray_levels(values.reshape(colours.shape).astype(np.float32, copy=False))


def through_glass(
    colours: Image, sigma: float, reach: int, moves: NDArray[np.integer[Any]]
) -> Image:
    """Return an image whose pixels are replaced by pixels nearby.

    Pixels are taken from the last to the first. Each becomes what its neighbour is at that time, as
    in the published code, which means to swap the two but copies one.

    Args:
        colours: HWC.
        sigma: standard deviation of the smoothing before and after, in pixels.
        reach: how many pixels at the lower and right borders stay, less one, and how many at the
            others, plus one.
        moves: (times, height, width, 2): how far to the right and down the neighbour is, from
            -reach to reach - 1.

    """
    values = _cut_off(smoothed_in_pairs(colours / 255, sigma))
    for move in moves:
        values = _moved(values, reach, move)
    return _cut_off(smoothed_in_pairs(values / 255, sigma))


def approached(colours: Image, count: int, step: float) -> Image:
    """Return the mean of an image, HWC, and of its centre zoomed into by 1, 1 + step, and so on."""
    values = colours.astype(np.float32)
    total = values.copy()
    # Summed as np.arange does it: how far a factor is rounded decides about a pixel of the crop.
    for factor in (1 + np.arange(count) * ((1 + step) - 1)).tolist():
        total += zoomed(values, factor)
    return gray_levels(total / np.float32(count + 1))


def _disk(radius: float, sigma: float) -> Real:
    # Whole pixels at least 8 from the middle; the smoothing's window grows with the disk.
    reach, side = (8, 3) if radius <= 8 else (math.ceil(radius), 5)
    steps = np.arange(-reach, reach + 1)
    disk = (steps[:, np.newaxis] ** 2 + steps**2 <= radius**2).astype(np.float32)
    disk = np.asarray(cv2.GaussianBlur(disk / disk.sum(), (side, side), sigma), np.float32)
    # Zeros around a small disk would only make OpenCV slower.
    spare = int(np.argmax(disk.any(axis=0)))
    return disk[spare : len(disk) - spare, spare : len(disk) - spare]


def _cut_off(shares: NDArray[np.float64]) -> Image:
    """Return gray levels of shares of white, without any slack.

    Glass cuts off fractions twice, and what the published code loses by errors of rounding, such as
    the last gray level of white, has to be lost likewise: else both add up to two gray levels.
    """
    return np.asarray(np.clip(shares, 0, 1) * 255).astype(np.uint8)


def _moved(values: Image, reach: int, moves: NDArray[np.integer[Any]]) -> Image:
    """Copy pixels in turn, without a loop over them: follow each pixel to where it comes from."""
    height, width = values.shape[:2]
    pixels = height * width
    rows, columns = np.mgrid[0:height, 0:width]
    inside = (
        (rows > reach) & (rows <= height - reach) & (columns > reach) & (columns <= width - reach)
    )
    neighbour = np.where(inside, (rows + moves[..., 1]) * width + columns + moves[..., 0], 0)
    own = np.arange(pixels).reshape(height, width)
    # Places from `pixels` on are pixels as they were; those before are pixels after the pass.
    done = (neighbour > own) & inside.ravel()[neighbour]
    source = np.where(inside, np.where(done, neighbour, neighbour + pixels), own + pixels)
    source = np.concatenate((source.ravel(), np.arange(pixels, 2 * pixels)))
    while (source[:pixels] < pixels).any():
        source = source[source]
    moved = values.reshape(pixels, -1)[source[:pixels] - pixels]
    return np.asarray(moved.reshape(values.shape), np.uint8)
