from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

from edgeflare_operators import MutationOperator, operators
from edgeflare_operators.frames import MOST_SHIFT, dropped_frame, jitter, swapped_frames

Clip = NDArray[np.uint8]

IN_TIME = (dropped_frame, jitter, swapped_frames)
FRAMEWISE = tuple(one for one in operators("frames") if one not in IN_TIME)
SEEDS = st.integers(0, 2**32)

SHAPES = st.tuples(array_shapes(min_dims=3, max_dims=3, max_side=6), st.sampled_from([1, 3, 4]))
clips = SHAPES.flatmap(lambda both: arrays(np.uint8, (*both[0], both[1])))


def distinct(frames: int = 8) -> Clip:
    """Return a clip of frames that differ everywhere."""
    return np.random.default_rng(0).integers(0, 256, (frames, 9, 7, 3)).astype(np.uint8)


def changed(clip: Clip, mutant: NDArray[np.generic]) -> list[int]:
    """Return the numbers of the frames that differ."""
    return [at for at, frame in enumerate(clip) if not np.array_equal(frame, mutant[at])]


def test_there_is_one_for_each_operator_on_images() -> None:
    assert [one.name for one in FRAMEWISE] == [one.name for one in operators("image")]


@pytest.mark.parametrize("op", FRAMEWISE, ids=lambda op: op.name)
def test_one_frame_is_mutated_or_all_are_alike(op: MutationOperator) -> None:
    still = distinct()[:1].repeat(5, axis=0)
    rng = np.random.default_rng(0)
    counts = []
    for _ in range(60):
        mutant = op(still, rng)
        counts.append(len(changed(still, mutant)))
        if counts[-1] == 5:
            assert (mutant == mutant[0]).all()
    assert set(counts) <= {0, 1, 5}
    assert counts.count(1) >= 5
    assert counts.count(5) >= 5


@given(clip=clips, seed=SEEDS)
def test_a_dropped_frame_is_the_one_before_it(clip: Clip, seed: int) -> None:
    mutant = dropped_frame(clip, np.random.default_rng(seed))
    places = changed(clip, mutant)
    assert len(places) <= 1
    assert all(np.array_equal(mutant[at], clip[at - 1]) for at in places)


@given(clip=clips, seed=SEEDS)
def test_swapped_frames_are_neighbours(clip: Clip, seed: int) -> None:
    mutant = swapped_frames(clip, np.random.default_rng(seed))
    places = changed(clip, mutant)
    assert len(places) in (0, 2)
    if places:
        first, second = places
        assert second == first + 1
        assert np.array_equal(mutant[first], clip[second])
        assert np.array_equal(mutant[second], clip[first])


@given(seed=SEEDS)
def test_jitter_moves_each_frame_by_a_few_pixels(seed: int) -> None:
    clip = distinct()
    mutant = jitter(clip, np.random.default_rng(seed))
    reach = range(-MOST_SHIFT, MOST_SHIFT + 1)
    inner = (slice(MOST_SHIFT, -MOST_SHIFT),) * 2
    for frame, moved in zip(clip, mutant, strict=True):
        shifted = [np.roll(frame, (down, right), (0, 1)) for down in reach for right in reach]
        assert any(np.array_equal(moved[inner], one[inner]) for one in shifted)


def test_a_single_frame_keeps_its_place() -> None:
    clip = distinct(1)
    for op in (dropped_frame, swapped_frames):
        assert np.array_equal(op(clip, np.random.default_rng(0)), clip)
