from __future__ import annotations

from dataclasses import replace
from math import inf, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.core.bounds import Bounds
from edgeflare.core.input import Input
from edgeflare.core.input_space import EIGHT_BIT, InputSpace

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


@settings(deadline=None)
@given(pairs(), balls)
@example((grays(9, 9), grays(0, 0)), Bounds(None, sqrt(18)))
@example((grays(255, 0), grays(0, 255)), Bounds(0.0, 0.0))
def test_a_projection_holds_and_stays(images: tuple[Image, Image], bounds: Bounds) -> None:
    mutant, seed = images
    projected = bounds.project(mutant, seed)
    assert projected.dtype == np.uint8
    assert projected.shape == seed.shape
    assert bounds.holds(projected, seed)
    assert np.array_equal(bounds.project(projected, seed), projected)


@settings(deadline=None)
@given(pairs(), balls)
def test_an_image_within_is_left_alone(images: tuple[Image, Image], bounds: Bounds) -> None:
    mutant, seed = images
    if bounds.holds(mutant, seed):
        assert bounds.project(mutant, seed) is mutant
    assert bounds.project(seed, seed) is seed
    assert Bounds().project(mutant, seed) is mutant


@settings(deadline=None)
@given(pairs(), balls)
def test_a_projection_lies_on_the_way_to_the_seed(
    images: tuple[Image, Image], bounds: Bounds
) -> None:
    mutant, seed = images
    projected = bounds.project(mutant, seed)
    assert (projected >= np.minimum(mutant, seed)).all()
    assert (projected <= np.maximum(mutant, seed)).all()


@settings(deadline=None)
@given(pairs(), balls)
def test_holds_is_what_the_distances_say(images: tuple[Image, Image], bounds: Bounds) -> None:
    mutant, seed = images
    change = mutant.astype(float) - seed.astype(float)
    near = bounds.max_linf is None or np.abs(change).max() <= bounds.max_linf
    room = inf if bounds.max_l2 is None else bounds.max_l2**2 - (change**2).sum()
    assume(abs(room) > 1e-3)  # the last digit of a root decides nothing
    assert bounds.holds(mutant, seed) == (near and room > 0)


@pytest.mark.parametrize(
    ("bounds", "mutant", "projected"),
    [
        (Bounds(max_linf=10), (255, 95, 0), (110, 95, 90)),
        (Bounds(max_linf=10.9), (255, 95, 0), (110, 95, 90)),
        (Bounds(max_l2=5), (106, 108, 100), (103, 104, 100)),
        (Bounds(max_linf=4, max_l2=5), (200, 0, 100), (103, 97, 100)),
    ],
)
def test_projections_worked_by_hand(bounds: Bounds, mutant: Any, projected: Any) -> None:
    seed = grays(100, 100, 100)
    assert np.array_equal(bounds.project(grays(*mutant), seed), grays(*projected))


SOUND = InputSpace("int16", -32_768, 32_767, cell_axes=1, level=16.0)
SPACES = {
    "image": EIGHT_BIT,
    "sound": SOUND,
    "float between bounds": InputSpace("float32", -0.1, 0.7, cell_axes=1, level=0.8 / 255),
    "float": InputSpace("float32", -inf, inf, cell_axes=1),
    "integers of 16 bits between bounds": InputSpace("int16", -100, 200, 1, level=300 / 255),
    "integers of 32 bits": InputSpace("int32", -(2.0**31), 2.0**31 - 1, 1, level=2.0**32 / 255),
}
OF_EACH_SPACE = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)


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


@pytest.mark.parametrize(
    ("bounds", "mutant", "projected"),
    [
        (Bounds(2.0, None, SOUND), [100, 20, 0], [32, 20, 0]),
        (Bounds(None, 5.0, SOUND), [96, 128, 0], [48, 64, 0]),
        (Bounds(None, 5.0, SPACES["float"]), [6.0, 8.0, 0.0], [3.0, 4.0, 0.0]),
        (Bounds(0.3, None, SPACES["float"]), [6.0, 0.1, -8.0], [0.3, 0.1, -0.3]),
        (Bounds(space=SPACES["float between bounds"]), [6.0, 0.1, -8.0], [0.7, 0.1, -0.1]),
        (
            Bounds(space=SPACES["integers of 16 bits between bounds"]),
            [300, 7, -300],
            [200, 7, -100],
        ),
    ],
)
def test_projections_of_other_spaces_worked_by_hand(
    bounds: Bounds, mutant: list[float], projected: list[float]
) -> None:
    dtype = bounds.space.dtype
    seed = np.zeros(3, dtype)
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
