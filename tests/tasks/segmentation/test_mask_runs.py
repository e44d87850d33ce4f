from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from edgeflare.tasks.segmentation.mask_overlap import Mask
from edgeflare.tasks.segmentation.mask_runs import MOST_RUNS, mask_runs, runs_to_show

masks = arrays(
    np.uint8, array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.integers(0, 3)
)


def numbers(runs: str) -> list[int]:
    return list(map(int, runs.split()))


def from_runs(runs: str, rows: int, columns: int) -> Mask:
    known = numbers(runs)
    return np.repeat(np.array(known[::2], np.uint8), known[1::2]).reshape(rows, columns)


@given(masks)
def test_small_masks_are_shown_as_they_are(mask: Mask) -> None:
    rows, columns, runs = runs_to_show(mask.shape, {"twin": mask})
    assert (rows, columns) == mask.shape
    assert np.array_equal(from_runs(runs["twin"], rows, columns), mask)
    values = numbers(runs["twin"])[::2]
    assert all(one != other for one, other in pairwise(values))


def test_large_masks_are_shown_by_the_nearest_of_their_pixels() -> None:
    mask = np.zeros((512, 256), np.uint8)
    mask[:256, 64:] = 3
    rows, columns, runs = runs_to_show((512, 256), {"device": mask})
    assert (rows, columns) == (128, 64)
    assert np.array_equal(from_runs(runs["device"], rows, columns), mask[2::4, 2::4])


def test_masks_of_many_runs_are_shown_with_fewer_pixels() -> None:
    noise = np.random.default_rng(3).integers(0, 2, (3, 256, 256)).astype(np.uint8)
    arms = dict(zip(("original", "twin", "device"), noise, strict=True))
    rows, columns, runs = runs_to_show((256, 256), arms)
    assert (rows, columns) == (16, 16)
    known = [numbers(one) for one in runs.values()]
    assert sum(map(len, known)) <= 2 * MOST_RUNS
    assert all(sum(one[1::2]) == rows * columns for one in known)
    assert len(mask_runs(noise[0])) > 60_000
