"""How far the masks of two models overlap, and in which regions they differ."""

from __future__ import annotations

from typing import Any, NamedTuple

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
    both, either = _shared(first, second, first == second)
    return float((both / either).mean())


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
    shared = np.where(first == second, 1.0 - apart**power, 0.0)
    both, either = _shared(first, second, shared)
    return float((both / either).mean())


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


def _shared(
    first: Mask, second: Mask, shared: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what two masks share of each class that either has, and the pixels of the union.

    Args:
        first: a mask.
        second: the other one.
        shared: how far each pixel is shared, 0 to 1; 0 where the classes differ.

    """
    one, other = first.ravel(), second.ravel()
    classes = int(max(one.max(), other.max())) + 1
    equal = np.bincount(one[one == other], minlength=classes)
    union = np.bincount(one, minlength=classes) + np.bincount(other, minlength=classes) - equal
    both = np.bincount(one, weights=shared.ravel(), minlength=classes)
    known = union > 0
    return both[known].astype(np.float64), union[known].astype(np.float64)
