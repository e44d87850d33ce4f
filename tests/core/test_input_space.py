"""Input spaces: whatever a search computes becomes an input of the domain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.core.input_space import EIGHT_BIT, InputSpace

SOUND = InputSpace("int16", -32768, 32767, cell_axes=1, level=128.0)
TABLE = InputSpace("float32", -4.0, 4.0, cell_axes=1, level=0.05)
SPACES = pytest.mark.parametrize("space", [EIGHT_BIT, SOUND, TABLE], ids=lambda one: one.dtype)
SEEDS = st.integers(0, 2**32 - 1)


def drawn(space: InputSpace, rng: np.random.Generator) -> NDArray[np.generic]:
    values = rng.uniform(space.lowest, space.highest, (6, 5, 3))
    return values.astype(space.dtype)


@SPACES
@given(rng_seed=SEEDS)
def test_an_input_in_levels_and_back_is_the_same(space: InputSpace, rng_seed: int) -> None:
    one = drawn(space, np.random.default_rng(rng_seed))
    back = space.nearest(space.levels(one))
    assert back.dtype == one.dtype
    assert np.allclose(back, one, rtol=1e-6, atol=0)
    falls, rises = space.limits(one)
    assert (falls <= 0).all()
    assert (rises >= 0).all()


@SPACES
@given(rng_seed=SEEDS)
def test_what_is_computed_becomes_an_input(space: InputSpace, rng_seed: int) -> None:
    rng = np.random.default_rng(rng_seed)
    levels = space.levels(drawn(space, rng)) + rng.normal(0.0, 300.0, (6, 5, 3))
    for one in (space.nearest(levels), space.dithered(levels, rng)):
        assert one.dtype == space.dtype
        assert one.min() >= space.lowest
        assert one.max() <= space.highest


@SPACES
@given(rng_seed=SEEDS, share=st.floats(0.0, 1.0))
def test_between_two_inputs_no_value_is_farther_than_at_the_end(
    space: InputSpace, rng_seed: int, share: float
) -> None:
    rng = np.random.default_rng(rng_seed)
    begin, end = drawn(space, rng), drawn(space, rng)
    one = space.between(begin, end, share)
    far = np.abs(np.subtract(end, begin, dtype=np.float64))
    assert (np.abs(np.subtract(one, begin, dtype=np.float64)) <= far * (1 + 1e-6) + 1e-6).all()
    assert space.distance(begin, one) <= space.distance(begin, end) * (1 + 1e-6)
    assert np.array_equal(space.between(begin, end, 0.0), begin)


@given(st.floats(0.0, 255.0), SEEDS)
def test_dithering_rounds_to_a_neighbour_and_is_right_on_average(
    value: float, rng_seed: int
) -> None:
    one = EIGHT_BIT.dithered(np.full(4000, value), np.random.default_rng(rng_seed))
    assert set(np.unique(one)) <= {int(np.floor(value)), min(255, int(np.floor(value)) + 1)}
    assert abs(one.mean() - value) < 0.05


def test_a_mask_of_cells_broadcasts_to_inputs() -> None:
    assert EIGHT_BIT.cell_mask((28, 30, 3)) == (28, 30, 1)
    assert SOUND.cell_mask((16_000,)) == (16_000,)
