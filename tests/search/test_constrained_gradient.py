"""The rules of DeepXplore, held to what its published functions return.

`recorded/deepxplore_rules.npz` was recorded by running `normalize`, `constraint_light`,
`constraint_occl`, `constraint_black`, `scale` and `update_coverage` of `MNIST/utils.py`, and
`constraint_light` of `ImageNet/utils.py`, from https://github.com/peikexin9/deepxplore, commit
7ab6a0246c9244195f11ce37ed60b35a1132208e, on random arrays, with numpy's functions in the place of
Keras's and layers of random values in the place of a network's.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.search.constrained_gradient import (
    Rectangle,
    blackout,
    lighting,
    normalized,
    occlusion,
    random_rectangle,
)
from edgeflare.whitebox.neuron_coverage import covered_neurons, scaled_means

PUBLISHED = dict(np.load(Path(__file__).parent / "recorded" / "deepxplore_rules.npz"))
IMAGES = ("gray", "color")
LAYERS = [PUBLISHED[f"layer_{at}"] for at in range(4)]


def close(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return np.allclose(one, other, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("image", IMAGES)
def test_gradients_are_normalized_as_published(image: str) -> None:
    for gradient, wanted in zip(
        PUBLISHED[f"{image}_gradients"], PUBLISHED[f"{image}_normalized"], strict=True
    ):
        assert close(normalized(gradient), wanted)
    assert not normalized(np.zeros((2, 2, 1))).any()


@pytest.mark.parametrize("image", IMAGES)
def test_the_light_is_as_published(image: str) -> None:
    gradients = PUBLISHED[f"{image}_normalized"]
    for gradient, digits, photographs in zip(
        gradients, PUBLISHED[f"{image}_light"], PUBLISHED[f"{image}_light_imagenet"], strict=True
    ):
        assert close(lighting(gradient), digits)
        assert close(1e4 * lighting(gradient), photographs)


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize(
    "sides", [(0, 0, 10, 10), (2, 3, 4, 5), (8, 9, 10, 10)], ids=["published", "inner", "cut off"]
)
def test_an_occlusion_is_as_published(image: str, sides: tuple[int, int, int, int]) -> None:
    recorded = PUBLISHED[f"{image}_occl_" + "_".join(map(str, sides))]
    for gradient, wanted in zip(PUBLISHED[f"{image}_normalized"], recorded, strict=True):
        assert np.array_equal(occlusion(gradient, Rectangle(*sides)), wanted)


@pytest.mark.parametrize("image", IMAGES)
def test_a_blackout_is_as_published(image: str) -> None:
    gradients = np.concatenate([PUBLISHED[f"{image}_normalized"]] * 2)
    steps, places = PUBLISHED[f"{image}_blackout"], PUBLISHED[f"{image}_places"].tolist()
    assert 0 < sum(step.any() for step in steps) < len(steps)
    for gradient, (top, left), wanted in zip(gradients, places, steps, strict=True):
        assert np.array_equal(blackout(gradient, Rectangle(top, left, 6, 6)), wanted)


def test_layers_are_scaled_and_neurons_covered_as_published() -> None:
    for at, layer in enumerate(LAYERS):
        scaled = PUBLISHED[f"scaled_{at}"]
        assert close(scaled_means(layer), scaled.reshape(-1, scaled.shape[-1]).mean(0))
    for threshold, wanted in zip(PUBLISHED["thresholds"], PUBLISHED["covered"], strict=True):
        assert np.array_equal(covered_neurons(LAYERS, float(threshold)), wanted)


@given(
    rows=st.integers(1, 9),
    columns=st.integers(1, 9),
    height=st.integers(1, 12),
    width=st.integers(1, 12),
    rng_seed=st.integers(0, 2**32),
)
def test_a_random_rectangle_lies_in_the_input(
    rows: int, columns: int, height: int, width: int, rng_seed: int
) -> None:
    one = random_rectangle((rows, columns, 3), height, width, np.random.default_rng(rng_seed))
    part = np.zeros((rows, columns, 3))[one.of(np.zeros((rows, columns, 3)))]
    assert part.shape == (min(height, rows), min(width, columns), 3)


def test_all_places_of_a_rectangle_are_drawn() -> None:
    rng = np.random.default_rng(0)
    drawn = {(one.top, one.left) for one in (random_rectangle((3, 4), 2, 2, rng) for _ in "a" * 99)}
    assert drawn == {(top, left) for top in range(2) for left in range(3)}


def test_of_an_input_with_one_axis_a_rectangle_is_a_stretch() -> None:
    gradient = np.array([1.0, -2.0, -3.0, 4.0])
    assert occlusion(gradient, Rectangle(1, 7, 2, 1)).tolist() == [0, -2, -3, 0]
    assert blackout(gradient, Rectangle(1, 0, 2, 1)).tolist() == [0, -1, -1, 0]
    assert random_rectangle((4,), 4, 6, np.random.default_rng(0)) == Rectangle(0, 0, 4, 6)
