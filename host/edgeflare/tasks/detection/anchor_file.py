"""Anchors: those of a file, and those that stand in the cells of grids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.array_file import NotArrays, read_arrays
from edgeflare.errors import UserError
from edgeflare.regular_file import read_regular

MOST_ANCHOR_BYTES = 2**23
"""The largest size of a file of anchors, which may come from a stranger."""

MOST_GRID_ANCHORS = 1_000_000


def read_anchors(path: Path) -> list[list[float]]:
    """Return the anchors of a file: an `.npz` with one array, or an `.npy`.

    Returns:
        A row for each anchor: centre x and y, as shares of the picture, or these with width and
        height.

    Raises:
        UserError: the file cannot be read, or has no such array.

    """
    try:
        arrays = read_arrays(read_regular(path, MOST_ANCHOR_BYTES), MOST_ANCHOR_BYTES)
    except OSError as error:
        raise UserError(f"anchors {path} cannot be read: {error.strerror or error}") from error
    except NotArrays as error:
        raise UserError(
            f"anchors {path}: not an .npz or .npy file of numbers ({error}): write it with "
            "numpy.savez(path, anchors=...)"
        ) from error
    shapes = ", ".join(str(one.shape) for one in arrays[:3])
    if len(arrays) != 1 or arrays[0].ndim != 2 or arrays[0].dtype.kind not in "fiu":
        raise UserError(
            f"anchors {path}: expected one array of numbers (anchors, 2) or (anchors, 4), but the "
            f"file has {shapes or 'none'}"
        )
    # As many digits as a float32 has, so that what is kept of them stays short.
    return [[float(f"{one:.9g}") for one in row] for row in arrays[0].tolist()]


def grid_anchors(cells: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """Return anchors in the centres of cells, row by row.

    Args:
        cells: for each grid, the cells along an axis, and the anchors in a cell.

    Returns:
        (anchors, 2) centres x and y, as shares of the picture.

    Raises:
        UserError: there are more than a million.

    """
    if sum(along * along * repeats for along, repeats in cells) > MOST_GRID_ANCHORS:
        raise UserError(f"cells is {[list(one) for one in cells]}, more than a million anchors")
    grids = []
    for along, repeats in cells:
        centres = (np.arange(along) + 0.5) / along
        y, x = np.meshgrid(centres, centres, indexing="ij")
        grids.append(np.repeat(np.column_stack([x.ravel(), y.ravel()]), repeats, axis=0))
    return np.concatenate(grids)
