"""How far the masks of two models overlap, and in which regions they differ."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.uint8]
"""The class of each pixel, (rows, columns)."""

Margins = NDArray[np.float32]
"""By how much the score of each pixel's class exceeds that of the next, (rows, columns)."""


class Region(NamedTuple):
    """A connected region in which two masks differ.

    Attributes:
        size: its pixels; 0 where the masks are equal.
        pixels: (rows, columns) bool, which these are.

    """

    size: int
    pixels: NDArray[np.bool_]


def mean_iou(first: Mask, second: Mask) -> float:
    """Return the mean IoU over the classes that either mask has: 1 for equal masks."""
    both, either = _shared(first, second)
    known = either > 0
    return float((both[known] / either[known]).mean())


def softened_iou(first: Mask, second: Mask, margins: tuple[Margins, Margins], power: int) -> float:
    """Return a mean IoU that also decreases where two masks are about to differ.

    A pixel to which both give one class counts as 1 - d**power, where d = |m1 - m2| / (m1 + m2) is
    the relative difference of its margins m1 and m2: 1 where one of them is 0, so that a pixel has
    moved the mean before its class changes. It has no unit, so it suits scores of any range.

    Args:
        first: a mask.
        second: the other one.
        margins: of both.
        power: the greater, the fewer pixels count that are far from changing.

    """
    one, other = margins
    total = one + other
    apart = np.abs(one - other) / np.where(total > 0.0, total, 1.0)
    both, either = _shared(first, second)
    lost = np.where(first == second, apart**power, 0.0)
    lost = np.bincount(first.ravel(), weights=lost.ravel(), minlength=len(both))
    known = either > 0
    return float(((both - lost)[known] / either[known]).mean())


def largest_region(differing: NDArray[np.bool_]) -> Region:
    """Return the largest connected region; pixels that touch by a corner are connected."""
    _, labels, stats, _ = cv2.connectedComponentsWithStats(
        differing.astype(np.uint8), connectivity=8
    )
    sizes = stats[1:, cv2.CC_STAT_AREA]
    if not len(sizes):
        return Region(0, np.zeros_like(differing))
    largest = int(sizes.argmax())
    return Region(int(sizes[largest]), labels == largest + 1)


def _shared(first: Mask, second: Mask) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return of each class how many pixels both masks give it, and how many either does."""
    classes = int(max(first.max(), second.max())) + 1
    pairs = first.astype(np.int64) * classes + second
    counts = np.bincount(pairs.ravel(), minlength=classes**2).reshape(classes, classes)
    both = counts.diagonal().astype(np.int64)
    return both, counts.sum(axis=0) + counts.sum(axis=1) - both
