"""Boxes against boxes: intersection over union, one-to-one matching, non-maximum suppression.

A box is (left, top, right, bottom), in any unit that both sides share.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError

Boxes = NDArray[np.float64]

_TINY = np.finfo(np.float64).tiny
"""The least area that can be divided by."""


def pairwise_iou(first: Boxes, second: Boxes) -> NDArray[np.float64]:
    """Return the intersection over union of each box with each.

    Args:
        first: (n, 4).
        second: (m, 4).

    Returns:
        (n, m), from 0 to 1. Of boxes without an area it is 1 where they are equal, and else 0.

    """
    left, top, right, bottom = first.T[:, :, None]
    other_left, other_top, other_right, other_bottom = second.T[:, None, :]
    width = np.minimum(right, other_right) - np.maximum(left, other_left)
    height = np.minimum(bottom, other_bottom) - np.maximum(top, other_top)
    shared = np.maximum(width, 0.0) * np.maximum(height, 0.0)
    union = _areas(first)[:, None] + _areas(second)[None, :] - shared
    empty = union < _TINY
    # Where the union is 0, so is what is shared.
    shares: NDArray[np.float64] = shared / np.maximum(union, _TINY)
    if empty.any():
        shares[empty] = (first[:, None] == second[None]).all(axis=2)[empty]
    return shares


def matched_pairs(
    overlaps: NDArray[np.float64], allowed: NDArray[np.bool_]
) -> list[tuple[int, int]]:
    """Match rows and columns one to one: as many pairs as can be, of these the greatest sum.

    Args:
        overlaps: (n, m), from 0 to 1.
        allowed: (n, m), which pairs there may be.

    Returns:
        Pairs of a row and a column, by rows.

    Raises:
        UserError: both sides have several, and scipy is not installed.

    """
    if not allowed.any():
        return []
    if 1 in allowed.shape:
        best = int(np.where(allowed, overlaps, -1.0).argmax())
        row, column = divmod(best, allowed.shape[1])
        return [(row, column)]
    require_scipy()
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - an extra

    # One more pair outweighs any overlaps of the others.
    weights = np.where(allowed, min(allowed.shape) + overlaps, 0.0)
    rows, columns = linear_sum_assignment(weights, maximize=True)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return [(row, column) for row, column in pairs if allowed[row, column]]


def unsuppressed(boxes: Boxes, labels: NDArray[np.int64], suppression: float) -> NDArray[np.int64]:
    """Return which boxes non-maximum suppression keeps.

    The best is kept, each other of its class whose IoU with it is greater than `suppression` is
    dropped, and so on.

    Args:
        boxes: (n, 4), the best first.
        labels: (n,), the class of each.
        suppression: 1 to keep all.

    Returns:
        Positions of the kept boxes, rising.

    """
    if suppression >= 1.0 or len(boxes) < 2:
        return np.arange(len(boxes))
    left = np.ones(len(boxes), np.bool_)
    for at in range(len(boxes)):
        if left[at]:
            near = pairwise_iou(boxes[at : at + 1], boxes[at + 1 :])[0] > suppression
            left[at + 1 :] &= ~(near & (labels[at + 1 :] == labels[at]))
    return np.flatnonzero(left)


def require_scipy() -> None:
    """Refuse to go on without scipy."""
    try:
        import scipy.optimize  # noqa: F401, PLC0415 - an extra, and slow to import
    except ImportError:
        raise UserError(
            "scipy is not installed, which the task detection matches objects with: "
            "pip install 'edgeflare[detection]'"
        ) from None


def _areas(boxes: Boxes) -> NDArray[np.float64]:
    width, height = (boxes[:, 2:] - boxes[:, :2]).T
    areas: NDArray[np.float64] = np.maximum(width, 0.0) * np.maximum(height, 0.0)
    return areas
