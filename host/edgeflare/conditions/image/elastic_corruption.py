"""Elastic deformation, among the common corruptions (Hendrycks and Dietterich 2019)."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.conditions.condition import condition
from edgeflare.conditions.image.gaussian_smoothing import smoothed
from edgeflare.conditions.image.severity_parameters import (
    Image,
    Real,
    SeverityParameters,
    gray_levels,
    on_colours,
)

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
def elastic_transform(one: Image, severity: float, rng: np.random.Generator) -> Image:
    """Move pixels; severity goes from shearing the whole to moving small parts."""
    parameters = ELASTIC.at(one, severity)
    corners = rng.uniform(-1, 1, (3, 2))
    fields = rng.random((2, *one.shape[:2]), np.float32) * 2 - 1
    return on_colours(one, lambda colours: deformed(colours, parameters, corners, fields))


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
