from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflare.search.refining.dct_basis import DCTBasis

IMAGES = st.tuples(st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 3, 4]))
OF_ONE_AXIS = st.tuples(st.integers(1, 900)) | st.tuples(st.integers(1, 300), st.integers(1, 20))
CLIPS = st.tuples(st.integers(1, 9), st.integers(1, 12), st.integers(1, 12), st.integers(1, 3))
SHAPES = (
    st.tuples(IMAGES, st.just(2))
    | st.tuples(OF_ONE_AXIS, st.just(1))
    | st.tuples(CLIPS, st.just(3))
)
"""Shapes of inputs, and how many of their axes number cells."""


@pytest.mark.slow
@settings(deadline=None)
@given(SHAPES, st.integers(0, 2**32 - 1))
def test_coefficients_come_back_from_their_input(
    of: tuple[tuple[int, ...], int], rng_seed: int
) -> None:
    shape, cell_axes = of
    cosines = DCTBasis(shape, cell_axes)
    coefficients = np.random.default_rng(rng_seed).normal(size=len(cosines))
    image = cosines.values(coefficients)
    assert image.shape == shape
    assert cosines.of(image) == pytest.approx(coefficients)
    assert np.linalg.norm(image) == pytest.approx(np.linalg.norm(coefficients))


def test_an_image_of_few_pixels_is_held_whole() -> None:
    image = np.random.default_rng(1).normal(size=(16, 5, 3))
    cosines = DCTBasis(image.shape)
    assert cosines.values(cosines.of(image)) == pytest.approx(image)


def test_the_lowest_frequency_is_the_mean_and_differences_between_channels_are_not_low() -> None:
    cosines = DCTBasis((28, 28, 3))
    lowest = np.zeros(len(cosines))
    lowest[cosines.frequencies.argmin()] = 1.0
    assert np.ptp(cosines.values(lowest)) == pytest.approx(0.0)
    assert (cosines.frequencies < 0.25).sum() < len(cosines) / 10


@pytest.mark.parametrize(
    ("shape", "cell_axes", "count"),
    [
        ((28, 30, 3), 2, 768),
        ((16_000,), 1, 256),
        ((7,), 1, 7),
        ((300, 6), 1, 1536),
        ((9, 8, 7, 2), 3, 432),
    ],
)
def test_inputs_of_every_shape_have_their_lowest_cosines(
    shape: tuple[int, ...], cell_axes: int, count: int
) -> None:
    cosines = DCTBasis(shape, cell_axes)
    assert len(cosines) == count
    chosen = np.argsort(cosines.frequencies)[:3]
    waves = cosines.waves(chosen)
    assert waves.shape == (len(chosen), *shape)
    for number, wave in zip(chosen, waves, strict=True):
        expected = np.eye(count)[number]
        assert cosines.of(wave) == pytest.approx(expected, abs=1e-9)
        assert cosines.values(expected) == pytest.approx(wave)
    assert cosines.of(waves) == pytest.approx(np.eye(count)[chosen], abs=1e-9)


@pytest.mark.parametrize(("samples", "highest"), [(16_000, 256), (100, 100)])
def test_the_cosines_of_a_sound_are_those_of_its_lowest_frequencies(
    samples: int, highest: int
) -> None:
    cosines = DCTBasis((samples,), 1)
    assert cosines.frequencies == pytest.approx(np.arange(highest) / samples)
    turns = np.diff(np.signbit(cosines.waves(np.array([highest - 1]))[0])).sum()
    assert turns == highest - 1
