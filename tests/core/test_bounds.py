"""Input spaces, and the bounds within which a search stays."""

from __future__ import annotations

from dataclasses import replace
from math import inf, sqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.core.bounds import Bounds
from edgeflare.core.input_space import EIGHT_BIT, Input, InputSpace

SPEECH = InputSpace("int16", -32768, 32767, cell_axes=1, level=2.0)
TABLE = InputSpace("float32", -4.0, 4.0, cell_axes=1, level=0.05)
OF_EACH_DTYPE = pytest.mark.parametrize(
    "space", [EIGHT_BIT, SPEECH, TABLE], ids=lambda one: one.dtype
)
SEEDS = st.integers(0, 2**32 - 1)


def drawn(space: InputSpace, rng: np.random.Generator) -> NDArray[np.generic]:
    values = rng.uniform(space.lowest, space.highest, (6, 5, 3))
    return values.astype(space.dtype)


@OF_EACH_DTYPE
@given(rng_seed=SEEDS)
def test_an_input_in_levels_and_back_is_the_same(space: InputSpace, rng_seed: int) -> None:
    one = drawn(space, np.random.default_rng(rng_seed))
    back = space.nearest(space.levels(one))
    assert back.dtype == one.dtype
    assert np.allclose(back, one, rtol=1e-6, atol=0)
    falls, rises = space.limits(one)
    assert (falls <= 0).all()
    assert (rises >= 0).all()


@OF_EACH_DTYPE
@given(rng_seed=SEEDS)
def test_what_is_computed_becomes_an_input(space: InputSpace, rng_seed: int) -> None:
    rng = np.random.default_rng(rng_seed)
    levels = space.levels(drawn(space, rng)) + rng.normal(0.0, 300.0, (6, 5, 3))
    for one in (space.nearest(levels), space.dithered(levels, rng)):
        assert one.dtype == space.dtype
        assert one.min() >= space.lowest
        assert one.max() <= space.highest


@OF_EACH_DTYPE
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
    assert SPEECH.cell_mask((16_000,)) == (16_000,)


Image = NDArray[np.uint8]


def grays(*values: int) -> Image:
    return np.array(values, dtype=np.uint8).reshape(1, -1, 1)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Image, Image]:
    """A mutant and its seed."""
    size = draw(st.integers(1, 12))
    gray = st.integers(0, 255) | st.sampled_from([0, 255])
    mutant, seed = (draw(st.lists(gray, min_size=size, max_size=size)) for _ in ("mutant", "seed"))
    return grays(*mutant), grays(*seed)


linf = st.none() | st.integers(0, 255).map(float) | st.floats(0.0, 300.0)
# Roots of whole numbers too: a change can then lie on the bound to the last digit.
l2 = st.none() | st.integers(0, 500_000).map(sqrt) | st.floats(0.0, 1000.0)
balls = st.builds(Bounds, linf, l2)


SOUND = InputSpace("int16", -32_768, 32_767, cell_axes=1, level=16.0)
BOUNDED = {
    "image": EIGHT_BIT,
    "sound": SOUND,
    "float between bounds": InputSpace("float32", -0.1, 0.7, cell_axes=1, level=0.8 / 255),
    "float": InputSpace("float32", -inf, inf, cell_axes=1),
    "integers of 16 bits between bounds": InputSpace("int16", -100, 200, 1, level=300 / 255),
    "integers of 32 bits": InputSpace("int32", -(2.0**31), 2.0**31 - 1, 1, level=2.0**32 / 255),
}
OF_EACH_SPACE = pytest.mark.parametrize("space", BOUNDED.values(), ids=BOUNDED)


def inputs_of(space: InputSpace) -> st.SearchStrategy[tuple[Input, Input]]:
    """Mutants, of which values may lie beyond the space, and their seeds."""
    if space.whole:
        limits = np.iinfo(space.dtype)
        beyond = st.integers(int(limits.min), int(limits.max))
        within = st.integers(int(space.lowest), int(space.highest))
        return st.integers(1, 8).flatmap(
            lambda size: st.tuples(
                arrays(space.dtype, (size,), elements=beyond),
                arrays(space.dtype, (size,), elements=within),
            )
        )
    lowest = max(space.lowest, -1e6)
    wide = st.floats(-1e6, 1e6, width=32, allow_subnormal=False)
    near = st.floats(0.0, 1.0).map(
        lambda share: lowest + share * (min(space.highest, 1e6) - lowest)
    )
    return st.integers(1, 8).flatmap(
        lambda size: st.tuples(
            st.lists(wide | near, min_size=size, max_size=size),
            st.lists(near, min_size=size, max_size=size),
        ).map(lambda both: (np.array(both[0], np.float32), space.clipped(np.array(both[1]))))
    )


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_a_distance_of_whole_numbers_is_exact_on_any_processor(dtype: str) -> None:
    """Some libraries' vector instructions add one for each value that differs."""
    limits, rng = np.iinfo(dtype), np.random.default_rng(0)
    space = InputSpace(dtype, float(limits.min), float(limits.max), cell_axes=1)
    for size in (1, 2, 9, 40, 1000):
        mutant, seed = rng.integers(limits.min, limits.max, (2, size), dtype, endpoint=True)
        squared = sum((a - b) ** 2 for a, b in zip(mutant.tolist(), seed.tolist(), strict=True))
        assert Bounds(None, sqrt(squared), space=space).holds(mutant, seed)
        assert not Bounds(None, sqrt(squared - 1), space=space).holds(mutant, seed)


@OF_EACH_SPACE
@settings(deadline=None)
@given(data=st.data(), ball=balls)
def test_a_projection_holds_stays_and_lies_in_the_space(
    space: InputSpace, data: st.DataObject, ball: Bounds
) -> None:
    mutant, seed = data.draw(inputs_of(space))
    bounds = replace(ball, space=space)
    projected = bounds.project(mutant, seed)
    assert projected.dtype == space.dtype
    assert projected.shape == seed.shape
    assert bounds.holds(projected, seed)
    assert bounds.project(projected, seed) is projected
    assert bounds.project(seed, seed) is seed
    assert space.contains(projected)
    # A float's way may be rounded at its larger end.
    last_digit = 0 if space.whole else np.spacing(np.maximum(np.abs(mutant), np.abs(seed)))
    assert (projected >= np.minimum(mutant, seed) - last_digit).all()
    assert (projected <= np.maximum(mutant, seed) + last_digit).all()
    if bounds.holds(mutant, seed):
        assert projected is mutant


@pytest.mark.slow
@OF_EACH_SPACE
@settings(deadline=None)
@given(data=st.data(), ball=balls)
def test_bounds_are_in_the_levels_of_the_space(
    space: InputSpace, data: st.DataObject, ball: Bounds
) -> None:
    mutant, seed = data.draw(inputs_of(space))
    mutant = space.clipped(mutant)
    far = space.distances(mutant, seed)
    rooms = [
        inf if ball.max_linf is None else ball.max_linf - far.linf,
        inf if ball.max_l2 is None else ball.max_l2 - far.l2,
    ]
    assume(all(abs(room) > 1e-3 for room in rooms))  # the last digit decides nothing
    assert replace(ball, space=space).holds(mutant, seed) == (min(rooms) > 0)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
def test_the_largest_change_of_many_values_is_exact(dtype: str) -> None:
    lowest, highest = np.iinfo(dtype).min, np.iinfo(dtype).max
    space, most = InputSpace(dtype, lowest, highest, cell_axes=1), float(highest - lowest)
    seed = np.full(5000, lowest, dtype)
    mutant = seed.copy()
    mutant[7] = highest
    for one, other in ((mutant, seed), (seed, mutant)):
        assert Bounds(most, None, space).holds(one, other)
        assert Bounds(most, most + 1, space).holds(one, other)
        assert not Bounds(most - 1, None, space).holds(one, other)
        assert not Bounds(most, most - 1, space).holds(one, other)


@pytest.mark.parametrize(
    ("bounds", "mutant", "projected"),
    [
        (Bounds(max_linf=10), [255, 95, 0], [110, 95, 90]),
        (Bounds(max_linf=10.9), [255, 95, 0], [110, 95, 90]),
        (Bounds(max_l2=5), [106, 108, 100], [103, 104, 100]),
        (Bounds(max_linf=4, max_l2=5), [200, 0, 100], [103, 97, 100]),
        (Bounds(max_l2=sqrt(18)), [109, 109, 100], [103, 103, 100]),
        (Bounds(0.0, 0.0), [0, 255, 100], [100, 100, 100]),
        (Bounds(2.0, None, SOUND), [100, 20, 0], [32, 20, 0]),
        (Bounds(None, 5.0, SOUND), [96, 128, 0], [48, 64, 0]),
        (Bounds(None, 5.0, BOUNDED["float"]), [6.0, 8.0, 0.0], [3.0, 4.0, 0.0]),
        (Bounds(0.3, None, BOUNDED["float"]), [6.0, 0.1, -8.0], [0.3, 0.1, -0.3]),
        (Bounds(space=BOUNDED["float between bounds"]), [6.0, 0.1, -8.0], [0.7, 0.1, -0.1]),
        (
            Bounds(space=BOUNDED["integers of 16 bits between bounds"]),
            [300, 7, -300],
            [200, 7, -100],
        ),
    ],
)
def test_projections_worked_by_hand(
    bounds: Bounds, mutant: list[float], projected: list[float]
) -> None:
    dtype = bounds.space.dtype
    seed = np.full(3, 100 if dtype == "uint8" else 0, dtype)
    got = bounds.project(np.array(mutant, dtype), seed)
    assert got == pytest.approx(np.array(projected, dtype))


def test_no_bounds_hold_inputs_of_every_type() -> None:
    for dtype in ("float32", "int32", "int16"):
        one = np.array([7, -7], dtype)
        assert Bounds().project(one, np.zeros(2, dtype)) is one


@settings(deadline=None)
@given(pairs(), balls)
def test_images_are_projected_in_whole_gray_levels(
    images: tuple[Image, Image], bounds: Bounds
) -> None:
    mutant, seed = images
    change = mutant.astype(np.int16) - seed
    if bounds.max_linf is not None:
        change = np.clip(change, -int(bounds.max_linf), int(bounds.max_linf))
    squared = int((change.astype(np.int64) ** 2).sum())
    if bounds.max_l2 is not None and squared > bounds.max_l2**2 + 1e-3:
        change = np.trunc(change * (bounds.max_l2 / sqrt(squared))).astype(np.int16)
    expected = mutant if bounds.holds(mutant, seed) else (seed + change).astype(np.uint8)
    assert np.array_equal(bounds.project(mutant, seed), expected)
