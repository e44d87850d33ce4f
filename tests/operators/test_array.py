from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

from edgeflare_operators import MutationOperator
from edgeflare_operators.array import (
    MOST_JITTER,
    as_type_of,
    drift,
    dropped_samples,
    jitter,
    scaling,
    spread,
    swapped_channels,
    time_warp,
)

IN_PROPORTION = (drift, jitter)

shapes = array_shapes(min_dims=1, max_dims=2, max_side=20)
floats = shapes.flatmap(
    lambda shape: arrays(np.float32, shape, elements=st.floats(-1e6, 1e6, width=32))
)
integers = st.tuples(st.sampled_from(["int8", "uint8", "int16", "int32"]), shapes).flatmap(
    lambda both: arrays(both[0], both[1])
)
inputs = st.one_of(floats, integers)
seeds = st.integers(0, 2**32)


def sensor() -> NDArray[np.float32]:
    """Return 100 times of three channels, whose spreads are 1, 100 and 10,000."""
    rng = np.random.default_rng(0)
    return (rng.normal(size=(100, 3)) * [1.0, 1e2, 1e4]).astype(np.float32)


@pytest.mark.parametrize("op", IN_PROPORTION, ids=lambda op: op.name)
@given(seed=seeds)
def test_changes_are_in_proportion_to_the_spread_of_each_channel(
    op: MutationOperator, seed: int
) -> None:
    one = sensor()
    change = op(one, np.random.default_rng(seed)) - one
    shares = change.std(axis=0) / one.std(axis=0)
    assert shares.max() < 1.0
    assert spread(one[:2]) == pytest.approx(np.abs(one[0] - one[1]) / 2)
    larger = op(one * np.float32(8), np.random.default_rng(seed))
    np.testing.assert_allclose(larger, (one + change) * 8, rtol=1e-3, atol=1e-3 * abs(larger).max())


@pytest.mark.parametrize("op", [*IN_PROPORTION, time_warp], ids=lambda op: op.name)
@given(value=st.floats(-1e3, 1e3, width=32), seed=seeds)
def test_an_array_without_spread_stays(op: MutationOperator, value: float, seed: int) -> None:
    flat = np.full((9, 2), value, np.float32)
    np.testing.assert_allclose(op(flat, np.random.default_rng(seed)), flat, rtol=1e-6)


def test_jitter_has_the_deviation_that_it_says() -> None:
    rng = np.random.default_rng(0)
    one = sensor()
    shares = [(jitter(one, rng) - one).std(axis=0) / one.std(axis=0) for _ in range(300)]
    assert np.max(shares) == pytest.approx(MOST_JITTER, rel=0.3)
    assert np.mean(shares) == pytest.approx(MOST_JITTER / 2, rel=0.1)


@given(one=arrays(np.float32, (6, 3), elements=st.floats(1, 100, width=32)), seed=seeds)
def test_scaling_multiplies_each_channel(one: NDArray[np.float32], seed: int) -> None:
    factors = scaling(one, np.random.default_rng(seed)) / one
    np.testing.assert_allclose(factors, np.broadcast_to(factors[0], one.shape), rtol=1e-4)


@given(one=inputs, seed=seeds)
def test_dropped_samples_are_those_before_them(one: NDArray[np.generic], seed: int) -> None:
    mutant = dropped_samples(one, np.random.default_rng(seed))
    changed = [row for row in range(len(one)) if not np.array_equal(mutant[row], one[row])]
    assert len(changed) <= max(1, len(one) // 10)
    assert all(np.array_equal(mutant[row], mutant[row - 1]) for row in changed)


@given(one=floats, seed=seeds)
def test_time_warp_keeps_the_ends_and_the_range(one: NDArray[np.float32], seed: int) -> None:
    mutant = time_warp(one, np.random.default_rng(seed))
    for end in (0, -1):
        np.testing.assert_allclose(mutant[end], one[end], rtol=1e-6, atol=1e-6)
    assert (mutant.min(axis=0) >= one.min(axis=0)).all()
    assert (mutant.max(axis=0) <= one.max(axis=0)).all()


@given(one=inputs, seed=seeds)
def test_swapped_channels_only_change_places(one: NDArray[np.generic], seed: int) -> None:
    mutant = swapped_channels(one, np.random.default_rng(seed))
    before, after = (np.atleast_2d(each).T.tolist() for each in (one, mutant))
    assert sorted(after) == sorted(before)
    assert sum(a != b for a, b in zip(after, before, strict=True)) in (0, 2)


def test_real_values_stay_within_what_their_type_holds() -> None:
    largest = np.finfo(np.float32).max
    held = as_type_of(np.zeros(2, np.float32), np.array([1e39, -1e39]))
    assert held.tolist() == [largest, -largest]
