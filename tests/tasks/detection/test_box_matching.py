from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from edgeflare.tasks.detection.box_matching import matched_pairs, pairwise_iou, unsuppressed

Box = tuple[float, float, float, float]

corners = st.integers(0, 12).map(lambda n: n / 8)


@st.composite
def boxes(draw: st.DrawFn, most: int = 5) -> NDArray[np.float64]:
    each = draw(st.lists(st.tuples(corners, corners, corners, corners), max_size=most))
    return np.array([(*np.minimum(a[:2], a[2:]), *np.maximum(a[:2], a[2:])) for a in each]).reshape(
        -1, 4
    )


def iou_by_cells(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the IoU of two boxes whose corners are multiples of 1/8, counted in cells."""

    def cells(box: NDArray[np.float64]) -> set[tuple[int, int]]:
        left, top, right, bottom = (int(side * 8) for side in box)
        return {(x, y) for x in range(left, right) for y in range(top, bottom)}

    both = cells(first) | cells(second)
    return len(cells(first) & cells(second)) / len(both) if both else float((first == second).all())


@given(boxes(), boxes())
def test_iou_is_that_of_counted_cells(
    first: NDArray[np.float64], second: NDArray[np.float64]
) -> None:
    overlaps = pairwise_iou(first, second)
    assert overlaps.shape == (len(first), len(second))
    for i, one in enumerate(first):
        for j, other in enumerate(second):
            assert overlaps[i, j] == pytest.approx(iou_by_cells(one, other))


def best_by_trying(overlaps: NDArray[np.float64], allowed: NDArray[np.bool_]) -> tuple[int, float]:
    """Return number and sum of the best pairs among all ways to match."""
    n, m = overlaps.shape
    best = (0, 0.0)
    for size in range(1, min(n, m) + 1):
        for rows in combinations(range(n), size):
            for columns in permutations(range(m), size):
                if all(allowed[i, j] for i, j in zip(rows, columns, strict=True)):
                    total = sum(overlaps[i, j] for i, j in zip(rows, columns, strict=True))
                    best = max(best, (size, total))
    return best


@given(boxes(4), boxes(4), st.sampled_from([0.05, 0.3, 0.5, 0.7]))
def test_matching_is_the_best_of_all_ways_and_scipys(
    first: NDArray[np.float64], second: NDArray[np.float64], least: float
) -> None:
    overlaps = pairwise_iou(first, second)
    allowed = overlaps >= least
    pairs = matched_pairs(overlaps, allowed)
    rows, columns = [i for i, _ in pairs], [j for _, j in pairs]
    assert len(set(rows)) == len(set(columns)) == len(pairs)
    assert all(allowed[i, j] for i, j in pairs)
    total = sum(overlaps[i, j] for i, j in pairs)
    size, most = best_by_trying(overlaps, allowed)
    assert (len(pairs), total) == (size, pytest.approx(most))

    weights = np.where(allowed, 10.0 + overlaps, 0.0)
    at = linear_sum_assignment(weights, maximize=True)
    chosen = weights[at]
    assert len(pairs) == int((chosen > 0.0).sum())
    assert total == pytest.approx(float(chosen.sum()) - 10.0 * len(pairs))


@given(boxes(8), st.data(), st.sampled_from([0.1, 0.3, 0.6]))
def test_suppression_drops_what_overlaps_a_better_one_of_its_class(
    each: NDArray[np.float64], data: st.DataObject, most: float
) -> None:
    labels = np.array(data.draw(st.lists(st.integers(0, 1), min_size=8, max_size=8))[: len(each)])
    labels = labels.astype(np.int64)
    kept: list[int] = []
    for i in range(len(each)):
        if all(iou_by_cells(each[i], each[k]) <= most for k in kept if labels[k] == labels[i]):
            kept.append(i)
    assert unsuppressed(each, labels, most).tolist() == kept
    assert unsuppressed(each, labels, 1.0).tolist() == list(range(len(each)))


def test_one_object_on_a_side_needs_no_scipy_and_several_say_so(
    monkeypatch: pytest.MonkeyPatch, refusal: Callable[..., str]
) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    overlaps = np.array([[0.6, 0.9]])
    assert matched_pairs(overlaps, overlaps >= 0.5) == [(0, 1)]
    several = np.array([[0.6, 0.9], [0.9, 0.6]])
    said = refusal(matched_pairs, several, several >= 0.5)
    assert "pip install 'edgeflare[detection]'" in said
