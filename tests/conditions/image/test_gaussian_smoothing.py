from __future__ import annotations

import cv2
import numpy as np
import pytest

from edgeflare.conditions.image.gaussian_smoothing import smoothed, smoothed_in_pairs


@pytest.mark.parametrize("sigma", [0.0, 0.3, 2.0, 9.0, 60.0])
def test_reflected_smoothing_is_that_of_an_image_and_its_mirror_images(sigma: float) -> None:
    """Also where the Gaussian is many times as wide as the image."""
    field = np.random.default_rng(0).uniform(-1, 1, (20, 27))
    reach = int(3 * sigma + 0.5)
    mirrored = np.pad(field, reach, mode="symmetric")
    expected = smoothed(mirrored, sigma, truncate=3.0)[reach : reach + 20, reach : reach + 27]
    made = smoothed(field, sigma, truncate=3.0, border=cv2.BORDER_REFLECT)
    assert made == pytest.approx(expected, abs=1e-12)


def test_a_point_becomes_a_gaussian_that_ends() -> None:
    point = np.zeros((1, 41, 1))
    point[0, 20] = 1
    row = smoothed(point, 2.0)[0, :, 0]
    steps = np.arange(-8, 9)
    expected = np.exp(-(steps**2) / 8)
    assert row[12:29] == pytest.approx(expected / expected.sum())
    assert not row[:12].any()
    assert not row[29:].any()


@pytest.mark.parametrize("sigma", [0.05, 0.4, 1.1, 1.5])
def test_sums_of_pairs_are_scipys_in_every_bit(sigma: float) -> None:
    scipy = pytest.importorskip("scipy.ndimage")
    values = np.random.default_rng(0).random((11, 17, 3))
    expected = scipy.gaussian_filter(values, (sigma, sigma, 0), mode="nearest")
    assert np.array_equal(smoothed_in_pairs(values, sigma), expected)
    assert smoothed(values, sigma) == pytest.approx(expected, abs=1e-12)
