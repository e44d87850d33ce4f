"""Masks as they are kept to be shown: fewer pixels, in runs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import numpy as np

from edgeflare.tasks.segmentation.mask_overlap import Mask

SHOWN_SIZES = (128, 96, 64, 48, 32, 16)
"""Rows and columns of a mask at most, as it is shown."""

MOST_RUNS = 600
"""Runs of all masks of an input together, above which fewer pixels are shown: a finding has those
of its seed too, and its JSON is to stay under 10 KB."""


def runs_to_show(
    shape: tuple[int, int], masks: Mapping[str, Mask]
) -> tuple[int, int, dict[str, str]]:
    """Return the size of masks as they are shown, and their runs.

    Of each square of pixels the nearest to its centre is shown.

    Args:
        shape: rows and columns of each mask.
        masks: by arm.

    Returns:
        Rows, columns, and by arm the runs, separated by spaces.

    """
    for most in SHOWN_SIZES:
        scale = min(1.0, most / max(shape))
        rows, columns = (max(1, round(size * scale)) for size in shape)
        shown = {arm: _sampled(mask, rows, columns) for arm, mask in masks.items()}
        runs = {arm: mask_runs(mask) for arm, mask in shown.items()}
        if sum(map(len, runs.values())) <= 2 * MOST_RUNS:
            break
    return rows, columns, {arm: " ".join(map(str, numbers)) for arm, numbers in runs.items()}


def mask_runs(mask: Mask) -> tuple[int, ...]:
    """Return a mask in runs: a class, how many pixels have it, the next class, and so on."""
    pixels = mask.ravel()
    starts = np.flatnonzero(np.concatenate(([True], pixels[1:] != pixels[:-1])))
    lengths = np.diff(np.append(starts, pixels.size))
    return tuple(chain.from_iterable(zip(pixels[starts].tolist(), lengths.tolist(), strict=True)))


def _sampled(mask: Mask, rows: int, columns: int) -> Mask:
    places = (
        ((np.arange(count) + 0.5) * size / count).astype(np.int64)
        for size, count in zip(mask.shape, (rows, columns), strict=True)
    )
    return mask[np.ix_(*places)]
