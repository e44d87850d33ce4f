"""Laws of all mutation operators: a new input of the same kind, by the generator alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

from edgeflare_operators import MutationOperator, domains, operators
from edgeflare_operators.wrapping_noise import (
    wrapping_gaussian_noise,
    wrapping_multiplicative_noise,
)

Input = NDArray[Any]

CHANNELS = st.sampled_from([1, 3, 4])
ARRAYS = array_shapes(min_dims=1, max_dims=2, max_side=20)
INPUTS: dict[str, st.SearchStrategy[Input]] = {
    "array": st.one_of(
        arrays(np.float32, ARRAYS, elements=st.floats(-1e6, 1e6, width=32)),
        st.sampled_from(["int8", "uint8", "int16", "int32"]).flatmap(
            lambda dtype: arrays(dtype, ARRAYS)
        ),
    ),
    "audio": arrays(np.int16, st.tuples(st.integers(1, 300))),
    "frames": arrays(
        np.uint8, st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6), CHANNELS)
    ),
    "image": arrays(np.uint8, st.tuples(st.integers(1, 20), st.integers(1, 20), CHANNELS)),
    "tokens": arrays(np.int32, st.tuples(st.integers(1, 20))),
}

RNG = np.random.default_rng(0)
SAMPLES: dict[str, Input] = {
    "array": (RNG.normal(size=(100, 3)) * [1.0, 1e2, 1e4]).astype(np.float32),
    "audio": RNG.integers(-8_000, 8_000, 8_000).astype(np.int16),
    "frames": RNG.integers(0, 256, (8, 9, 7, 3)).astype(np.uint8),
    "image": RNG.integers(0, 256, (28, 28, 3)).astype(np.uint8),
    "tokens": np.array([1, 2, 5, 4, 3, 7, 0, 0], np.int32),
}

each = pytest.mark.parametrize(
    "op",
    [
        *(op for domain in sorted(INPUTS) for op in operators(domain)),
        *(wrapping_gaussian_noise, wrapping_multiplicative_noise),
    ],
    ids=lambda op: f"{op.domain} {op.name}",
)


def test_all_domains_are_held_to_them() -> None:
    assert domains() == tuple(sorted(INPUTS))


def laid_out_otherwise(one: Input) -> Input:
    """Return the same values, which lie in another order in memory."""
    return np.asfortranarray(one) if one.ndim > 1 else one[::-1].copy()[::-1]


@pytest.mark.slow
@each
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_gives_a_new_input_of_the_same_kind_by_the_generator_alone(
    op: MutationOperator, data: st.DataObject, seed: int
) -> None:
    one = data.draw(INPUTS[op.domain])
    before = one.copy()
    mutant = op(one, np.random.default_rng(seed))
    assert (mutant.shape, mutant.dtype) == (one.shape, one.dtype)
    assert not np.shares_memory(mutant, one)
    assert np.array_equal(one, before)
    assert np.isfinite(mutant).all()
    assert np.array_equal(mutant, op(laid_out_otherwise(one), np.random.default_rng(seed)))


@each
def test_mutates(op: MutationOperator) -> None:
    rng = np.random.default_rng(0)
    mutants = {op(SAMPLES[op.domain], rng).tobytes() for _ in range(30)}
    assert len(mutants) >= (10 if op.domain == "audio" else 3)
