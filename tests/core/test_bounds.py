from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.core.bounds import Bounds

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
