"""What processing does, among the common corruptions (Hendrycks and Dietterich 2019)."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.conditions.condition import condition
from edgeflare.conditions.image.image_filters import smoothed
from edgeflare.conditions.image.severity_parameters import (
    Image,
    Real,
    SeverityParameters,
    gray_levels,
    on_colours,
    one_parameter,
    whole,
)

# What remains of the contrast.
CONTRAST = one_parameter((0.75, 0.5, 0.4, 0.3, 0.15), (0.4, 0.3, 0.2, 0.1, 0.05))
# What the side of the image is multiplied by.
PIXELATE = one_parameter((0.95, 0.9, 0.85, 0.75, 0.65), (0.6, 0.5, 0.4, 0.3, 0.25))
# Quality of JPEG.
JPEG = one_parameter((80, 65, 58, 50, 40), (25, 18, 15, 10, 7))
# Saturation is multiplied by the first and raised by the second; it grows weaker up to severity 2
# and stronger from 3.
SATURATE = SeverityParameters(
    ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
    ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
)


@condition(
    "contrast",
    domain="image",
    sets=("common", "digital"),
    summary="less contrast: all channels nearer to their means",
)
def contrast(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Draw each channel to its mean; the parameter is what remains of the distance."""
    del rng
    (kept,) = CONTRAST.at(image, severity)
    return on_colours(image, lambda colours: flattened(colours, kept))


@condition(
    "pixelate",
    domain="image",
    sets=("common", "digital"),
    summary="fewer and larger pixels",
)
def pixelate(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Shrink and enlarge again; the parameter is the smaller image's side, as a share."""
    del rng
    (share,) = PIXELATE.at(image, severity)
    return on_colours(image, lambda colours: pixelated(colours, share))


@condition(
    "jpeg-compression",
    domain="image",
    sets=("common", "digital"),
    summary="JPEG, of a lower quality the larger the image",
)
def jpeg_compression(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Encode and decode; the parameter is the quality."""
    del rng
    (quality,) = JPEG.at(image, severity)
    return on_colours(image, lambda colours: through_jpeg(colours, whole(quality)))


@condition(
    "saturate",
    domain="image",
    sets=("common", "extra", "digital"),
    summary="paler colours up to severity 2, stronger ones from 3; gray images stay",
)
def saturate(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Change the saturation in the sense of HSV; the parameters are a factor and a summand."""
    del rng
    factor, summand = SATURATE.at(image, severity)
    return on_colours(image, lambda colours: saturated(colours, factor, summand))


def flattened(colours: Image, kept: float) -> Image:
    """Return an image, HWC, each channel of which has so much of its distance to its mean."""
    means = colours.mean(axis=(0, 1))
    return gray_levels(colours * np.float32(kept) + (means * (1 - kept)).astype(np.float32))


def pixelated(colours: Image, share: float) -> Image:
    """Return an image, HWC, shrunk to a share of its sides by means of boxes, and enlarged."""
    for axis in (1, 0):
        colours = _boxes(colours, share, axis)
    return colours


def through_jpeg(colours: Image, quality: int) -> Image:
    """Return an image, HWC, as it is after JPEG of a quality from 0 to 100, 4:2:0 if coloured."""
    settings = [
        cv2.IMWRITE_JPEG_QUALITY,
        quality,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420,
    ]
    encoded = cv2.imencode(".jpg", np.ascontiguousarray(colours[..., ::-1]), settings)[1]
    decoded = np.asarray(cv2.imdecode(encoded, cv2.IMREAD_UNCHANGED), np.uint8)
    return np.ascontiguousarray(decoded.reshape(colours.shape)[..., ::-1])


def saturated(colours: Image, factor: float, summand: float) -> Image:
    """Return an image, HWC, with another saturation; one of a single channel is returned as it is.

    Gray pixels of coloured images have the hue of red, and become reddish with a summand.
    """
    if colours.shape[2] == 1:
        return np.array(colours)
    values: Real = colours.astype(np.float32)
    value = values.max(axis=2, keepdims=True)
    below = value - values
    chroma = below.max(axis=2, keepdims=True)
    wanted = np.clip(factor * chroma / np.maximum(value, 1) + summand, 0, 1) * value
    # How far channels are below the greatest, as shares of how far the smallest one is.
    shares = np.where(chroma > 0, below / np.maximum(chroma, 1), np.array((0, 1, 1), np.float32))
    return gray_levels(value - wanted * shares)


def _boxes(colours: Image, share: float, axis: int) -> Image:
    """Shrink along an axis by means of boxes of whole pixels, and enlarge by repeating them."""
    side = colours.shape[axis]
    fewer = max(int(side * share), 1)
    # A pixel belongs to the box that has its middle.
    starts = np.floor(np.arange(fewer) * (side / fewer) - 0.5).astype(np.intp) + 1
    counts = np.diff(starts, append=side)
    sums = np.add.reduceat(colours.astype(np.int32), starts, axis=axis)
    counts = counts.reshape((-1, 1, 1) if axis == 0 else (1, -1, 1))
    means: Image = ((2 * sums + counts) // (2 * counts)).astype(np.uint8)
    nearest: NDArray[np.intp] = ((np.arange(side) + 0.5) * (fewer / side)).astype(np.intp)
    return means.take(nearest, axis=axis)


# Strength of the displacements, sigma of their smoothing, and by how much three points of the image
# are moved, all in pixels.
ELASTIC = SeverityParameters(
    ((0, 0, 2.56), (1.6, 6.4, 2.24), (2.56, 1.92, 1.92), (3.2, 1.28, 1.6), (3.2, 0.96, 0.96)),
    (
        (488, 170.8, 24.4),
        (488, 19.52, 48.8),
        (12.2, 2.44, 4.88),
        (17.08, 2.44, 4.88),
        (29.28, 2.44, 4.88),
    ),
)


@condition(
    "elastic-transform",
    domain="image",
    sets=("common", "digital"),
    summary="an image on rubber: sheared, then stretched here and squeezed there",
)
def elastic_transform(image: Image, severity: float, rng: np.random.Generator) -> Image:
    """Move pixels; severity goes from shearing the whole to moving small parts."""
    parameters = ELASTIC.at(image, severity)
    corners = rng.uniform(-1, 1, (3, 2))
    fields = rng.random((2, *image.shape[:2]), np.float32) * 2 - 1
    return on_colours(image, lambda colours: deformed(colours, parameters, corners, fields))


def deformed(
    colours: Image, parameters: tuple[float, ...], corners: NDArray[np.float64], fields: Real
) -> Image:
    """Return an image whose pixels have moved.

    Args:
        colours: HWC; outside it is reflected.
        parameters: a row of `ELASTIC`.
        corners: (3, 2): how far three points move to the right and down, from -1 to 1.
        fields: (2, height, width): how far pixels come from the right and from below, from -1 to 1.

    """
    strength, sigma, largest = parameters
    height, width = colours.shape[:2]
    reach = min(height, width) // 3
    corner = np.array(((reach, reach), (reach, -reach), (-reach, -reach)), np.float32)
    points = corner + np.array((width // 2, height // 2), np.float32)
    moved = points + (corners * largest).astype(np.float32)
    sheared = cv2.warpAffine(
        colours.astype(np.float32),
        cv2.getAffineTransform(points, moved),
        (width, height),
        borderMode=cv2.BORDER_REFLECT_101,
    ).reshape(colours.shape)
    across, down = (
        smoothed(field, sigma, truncate=3.0, border=cv2.BORDER_REFLECT) * np.float32(strength)
        for field in fields
    )
    rows = np.arange(height, dtype=np.float32)[:, np.newaxis] + down
    columns = np.arange(width, dtype=np.float32) + across
    return gray_levels(_sampled(np.asarray(sheared, np.float32), rows, columns))


def _sampled(values: Real, rows: Real, columns: Real) -> Real:
    """Interpolate linearly at places, (height, width); OpenCV's own rounds them to 1/32 pixel."""
    height, width, channels = values.shape
    above, before = np.floor(rows), np.floor(columns)
    down, right = (rows - above)[..., np.newaxis], (columns - before)[..., np.newaxis]
    top, bottom = (_reflected(above.astype(np.intp) + step, height) * width for step in (0, 1))
    left, after = (_reflected(before.astype(np.intp) + step, width) for step in (0, 1))
    pixels = values.reshape(-1, channels)
    upper = _between(pixels[top + left], pixels[top + after], right)
    lower = _between(pixels[bottom + left], pixels[bottom + after], right)
    return _between(upper, lower, down)


def _between(one: Real, other: Real, share: Real) -> Real:
    return one + (other - one) * share


def _reflected(places: NDArray[np.intp], side: int) -> NDArray[np.intp]:
    """Return where places outside of a side come from, if the side and its mirror image repeat."""
    within = places % (2 * side)
    return np.minimum(within, 2 * side - 1 - within)
