from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.tasks.segmentation.mask_overlap import (
    Margins,
    Mask,
    largest_region,
    mean_iou,
    softened_iou,
)

SHAPE = (5, 6)
masks = arrays(np.uint8, SHAPE, elements=st.integers(0, 3))
margins = arrays(np.float32, SHAPE, elements=st.floats(0.125, 8, width=32))


def by_hand(first: Mask, second: Mask) -> float:
    """Return the mean IoU, class by class."""
    each = []
    for one in range(4):
        a, b = first == one, second == one
        if (a | b).any():
            each.append((a & b).sum() / (a | b).sum())
    return float(np.mean(each))


@given(masks, masks)
def test_the_mean_iou_is_over_the_classes_that_either_mask_has(first: Mask, second: Mask) -> None:
    assert mean_iou(first, second) == pytest.approx(by_hand(first, second))
    assert mean_iou(first, second) == mean_iou(second, first)
    assert mean_iou(first, first) == 1.0


@given(masks, masks, margins, margins)
def test_a_softened_iou_is_never_above_that_of_the_masks(
    first: Mask, second: Mask, one: Margins, other: Margins
) -> None:
    soft = softened_iou(first, second, (one, other), 2)
    assert soft <= mean_iou(first, second) + 1e-6
    assert soft == pytest.approx(softened_iou(second, first, (other, one), 2))
    assert softened_iou(first, second, (one, one), 2) == pytest.approx(mean_iou(first, second))


def test_a_softened_iou_decreases_before_a_class_changes() -> None:
    mask = np.zeros((64, 64), np.uint8)
    mask[:32] = 1
    changed = mask.copy()
    changed[0] = 0
    sure, unsure = np.ones(mask.shape, np.float32), np.ones(mask.shape, np.float32)
    assert softened_iou(mask, mask, (sure, unsure), 2) == 1.0
    unsure[0] = 1e-6
    before = 1.0 - softened_iou(mask, mask, (sure, unsure), 2)
    after = 1.0 - softened_iou(mask, changed, (sure, unsure), 2)
    assert 0.5 * after < before < after
    assert after == pytest.approx(1.0 - mean_iou(mask, changed))


@given(arrays(np.bool_, SHAPE))
def test_pixels_that_touch_by_a_corner_are_one_region(differing: NDArray[np.bool_]) -> None:
    region = largest_region(differing)
    assert region.size == region.pixels.sum() == max(map(len, regions(differing)), default=0)
    assert not (region.pixels & ~differing).any()


def regions(differing: NDArray[np.bool_]) -> list[set[tuple[int, int]]]:
    """Return the connected regions, pixel by pixel."""
    left = {(int(row), int(column)) for row, column in np.argwhere(differing)}
    found = []
    while left:
        region, border = set(), [left.pop()]
        while border:
            row, column = border.pop()
            region.add((row, column))
            near = {(row + i, column + j) for i in (-1, 0, 1) for j in (-1, 0, 1)} & left
            left -= near
            border.extend(near)
        found.append(region)
    return found
