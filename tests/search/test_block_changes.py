"""Changes of one block: what they leave alone, and how far they go."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.core.bounds import UNBOUNDED, Bounds
from edgeflare.core.input import Input
from edgeflare.core.input_space import EIGHT_BIT, InputSpace
from edgeflare.domains.audio.audio_domain import PCM_16
from edgeflare.domains.tokens.token_space import TokenSpace
from edgeflare.search.block_changes import (
    LEAST_WAVE,
    random_block,
    random_wave,
    with_block,
    with_wave,
)

UNLIMITED = InputSpace("float32", -np.inf, np.inf, cell_axes=1)
SPACES = {
    "image": (EIGHT_BIT, (9, 7, 3)),
    "sound": (PCM_16, (500,)),
    "unlimited": (UNLIMITED, (40, 2)),
    "tokens": (TokenSpace.of_vocabulary(30), (12,)),
}


def middle(space: InputSpace, shape: tuple[int, ...]) -> Input:
    value = (space.lowest + space.highest) / 2 if np.isfinite(space.span) else 0.0
    return np.full(shape, value, space.dtype)


@pytest.mark.parametrize("kind", SPACES)
@given(rng_seed=st.integers(0, 10_000))
def test_a_wave_changes_one_block_alone(kind: str, rng_seed: int) -> None:
    space, shape = SPACES[kind]
    rng, one = np.random.default_rng(rng_seed), middle(space, shape)
    block = random_block(space.cells(shape), rng)
    other = with_wave(space, UNBOUNDED, one, block, rng)
    assert other.dtype == one.dtype
    assert np.isfinite(other.astype(float)).all()
    assert np.array_equal(with_block(other, one, block), one)


@given(rng_seed=st.integers(0, 10_000), linf=st.floats(5.0, 200.0), l2=st.floats(50.0, 900.0))
def test_a_wave_is_as_high_as_the_bounds_allow_or_lower(
    rng_seed: int, linf: float, l2: float
) -> None:
    space, shape = SPACES["sound"]
    rng, one = np.random.default_rng(rng_seed), middle(space, shape)
    block = random_block(space.cells(shape), rng)
    other = with_wave(space, Bounds(linf, l2, space), one, block, rng)
    rounding = 1.0 / space.level
    change = space.distances(other, one)
    assert change.linf <= linf + rounding
    assert change.l2 <= l2 + rounding * np.sqrt(one.size)
    allowed = min(linf, l2 / np.sqrt(block[0].stop - block[0].start))
    assert change.linf >= allowed * LEAST_WAVE - rounding


def test_some_waves_are_slopes_and_some_are_quick() -> None:
    rng = np.random.default_rng(0)
    turns = [np.abs(np.diff(np.sign(random_wave((64,), rng)))).sum() / 2 for _ in range(200)]
    assert min(turns) == 0
    assert max(turns) > 40
