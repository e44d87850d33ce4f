"""Zooming into the centre of an image, by the linear interpolation that ImageNet-C uses."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from edgeflare.conditions.image.severity_parameters import Real


def zoomed(values: Real, factor: float) -> Real:
    """Return the centre of an image, enlarged to the size of the image.

    The centre is cut out at whole pixels, enlarged so that its corner pixels stay corner pixels,
    and trimmed.

    Args:
        values: (height, width, channels).
        factor: at least 1.

    """
    above, share = _grid(values.shape[0], factor)
    upper = values[above]
    rows = upper + (values[above + 1] - upper) * share[:, np.newaxis, np.newaxis]
    before, share = _grid(values.shape[1], factor)
    left = rows[:, before]
    return np.asarray(left + (rows[:, before + 1] - left) * share[:, np.newaxis], np.float32)


@lru_cache(maxsize=256)
def _grid(side: int, factor: float) -> tuple[NDArray[np.intp], Real]:
    """Return the pixel before each place of a zoomed side, and the share of the pixel after it."""
    crop = math.ceil(side / factor)
    enlarged = round(crop * factor)
    places = (np.arange(side) + (enlarged - side) // 2) * ((crop - 1) / (enlarged - 1))
    before = np.minimum(places.astype(np.intp), crop - 2)
    return before + (side - crop) // 2, (places - before).astype(np.float32)
