from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

from edgeflare.domains.array.array_domain import ArrayDomain
from edgeflare.domains.domain_registry import decoder_of_file
from edgeflare.domains.frames.frames_domain import FramesDomain

Clip = NDArray[np.uint8]

CLIPS = st.tuples(array_shapes(min_dims=3, max_dims=3, max_side=6), st.sampled_from([1, 3, 4]))
clips = CLIPS.flatmap(lambda both: arrays(np.uint8, (*both[0], both[1])))


def moving_square(rng: np.random.Generator, frames: int = 6) -> Clip:
    """Return a bright square that moves over a random pattern."""
    pattern = rng.integers(0, 120, (1, 8, 8, 1)).astype(np.uint8)
    clip = pattern.repeat(frames, axis=0).repeat(4, axis=1).repeat(4, axis=2)
    for place in range(frames):
        clip[place, 8:16, 2 * place : 2 * place + 8] = 250
    return clip


@given(one=clips)
def test_a_file_keeps_a_clip_to_the_bit(one: Clip) -> None:
    data = FramesDomain.encode_file(one)
    kept = FramesDomain.decode_file(data)
    assert kept is not None
    assert (kept.dtype, kept.shape, kept.tobytes()) == (one.dtype, one.shape, one.tobytes())
    assert FramesDomain.encode_file(one) == data


def test_a_file_of_something_else_is_none() -> None:
    data = FramesDomain.encode_file(np.zeros((2, 3, 3, 1), np.uint8))
    assert FramesDomain.decode_file(data[:-1]) is None
    assert FramesDomain.decode_file(FramesDomain.encode_file(np.zeros((3, 3), np.uint8))) is None
    assert FramesDomain.decode_file(ArrayDomain.encode_file(np.zeros((2, 3, 3, 1)))) is None


def test_a_stored_file_is_read_without_its_pair() -> None:
    assert decoder_of_file("findings/000001.frames") == FramesDomain.decode_file
    assert decoder_of_file("findings/000001.npz") == ArrayDomain.decode_file


def test_cells_are_the_pixels_of_each_frame() -> None:
    assert FramesDomain.space.cells((5, 8, 9, 3)) == (5, 8, 9)
    assert FramesDomain.space.cell_mask((5, 8, 9, 3)) == (5, 8, 9, 1)


def test_the_operators_of_the_paper_are_those_of_images() -> None:
    assert [one.domain for one in FramesDomain.paper_operators()] == ["frames"] * 6
    assert FramesDomain.paper_operators()[0].name == "pixel-change"


@pytest.mark.parametrize(("change", "near"), [(1, 2), (40, 0)])
def test_near_duplicates_look_alike_in_every_frame(change: int, near: int) -> None:
    rng = np.random.default_rng(0)
    seeds = [moving_square(rng) for _ in range(3)]
    mutant = seeds[0].copy()
    mutant[2] = np.where(mutant[2] < 200, mutant[2] + change, mutant[2])
    prints = [FramesDomain.fingerprint(one) for one in seeds]
    assert FramesDomain.count_near(prints) == 0
    assert FramesDomain.count_near([*prints, FramesDomain.fingerprint(mutant)]) == near
