from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflare.search.refining.dct_basis import MOST, DCTBasis

SHAPES = st.tuples(st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 3, 4]))


@pytest.mark.slow
@settings(deadline=None)
@given(SHAPES, st.integers(0, 2**32 - 1))
def test_coefficients_come_back_from_their_image(
    shape: tuple[int, int, int], rng_seed: int
) -> None:
    cosines = DCTBasis(shape)
    coefficients = np.random.default_rng(rng_seed).normal(size=len(cosines))
    image = cosines.values(coefficients)
    assert image.shape == shape
    assert cosines.of(image) == pytest.approx(coefficients)
    assert np.linalg.norm(image) == pytest.approx(np.linalg.norm(coefficients))


def test_an_image_of_few_pixels_is_held_whole() -> None:
    image = np.random.default_rng(1).normal(size=(MOST, 5, 3))
    cosines = DCTBasis(image.shape)
    assert cosines.values(cosines.of(image)) == pytest.approx(image)


def test_the_lowest_frequency_is_the_mean_and_differences_between_channels_are_not_low() -> None:
    cosines = DCTBasis((28, 28, 3))
    lowest = np.zeros(len(cosines))
    lowest[cosines.frequencies.argmin()] = 1.0
    assert np.ptp(cosines.values(lowest)) == pytest.approx(0.0)
    assert (cosines.frequencies < 0.25).sum() < len(cosines) / 10
