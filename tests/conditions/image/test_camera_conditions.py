from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.conditions.image import camera_conditions as camera
from edgeflare.conditions.image.severity_parameters import Image
from published_corruptions import recording

GRAY = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)


@pytest.fixture
def image() -> Image:
    return recording("large").image


def test_warm_light_is_red_and_cold_light_blue(image: Image) -> None:
    plain = image.astype(int)
    warm, cold = camera.balanced(image, 50).astype(int), camera.balanced(image, -50).astype(int)
    assert np.abs(warm[..., 1] - plain[..., 1]).max() <= 1
    for changed, redder in ((warm, 1), (cold, -1)):
        change = redder * (changed - plain).mean(axis=(0, 1))
        assert change[0] > 3
        assert change[2] < -3


def test_light_of_2856_kelvin_has_the_ratios_of_plancks_law() -> None:
    """An incandescent lamp, CIE's illuminant A, against daylight; ratios by Wien's approximation.

    Wien's law differs from Planck's by less than 1 % here.
    """
    mired = 1e6 / 2856 - 1e6 / 6500
    white = np.full((1, 1, 3), 100, np.uint8)
    blue = camera.balanced(white, mired)[0, 0, 2]
    step = 1.438777e-2 * (1 / 2856 - 1 / 6500)
    ratio = np.exp(step * (1 / 550e-9 - 1 / 450e-9))
    assert blue == pytest.approx(100 * ratio ** (1 / 2.2), abs=1)


def test_white_balance_leaves_images_of_one_channel() -> None:
    assert np.array_equal(camera.white_balance(GRAY, 5, np.random.default_rng(0)), GRAY)


def test_gamma_keeps_black_white_and_order_and_goes_both_ways() -> None:
    made = [camera.gamma(GRAY, 5, np.random.default_rng(seed)).ravel() for seed in range(8)]
    for one in made:
        assert (one[0], one[-1]) == (0, 255)
        assert (np.diff(one.astype(int)) >= 0).all()
    middles = {int(one[128]) for one in made}
    assert middles == {round(255 * (128 / 255) ** 2.2), round(255 * (128 / 255) ** (1 / 2.2))}


def test_low_light_leaves_a_share_of_the_gray_levels() -> None:
    dark = camera.low_light(GRAY, 5, np.random.default_rng(0))
    assert np.array_equal(dark, np.round(GRAY * 0.2))


def test_jpeg_quality_does_not_depend_on_the_size(image: Image) -> None:
    small, large = image[:24, :24], np.tile(image, (3, 3, 1))[:72, :72]
    for picture in (small, large):
        encoded = cv2.imencode(".jpg", picture[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 70])[1]
        expected = np.asarray(cv2.imdecode(encoded, cv2.IMREAD_COLOR))[..., ::-1]
        assert np.array_equal(camera.jpeg_quality(picture, 3, np.random.default_rng(0)), expected)


@given(st.integers(0, 255), st.integers(0, 2**32), st.floats(1, 5))
def test_resampling_leaves_what_is_of_one_gray_level(
    level: int, seed: int, severity: float
) -> None:
    flat = np.full((9, 14, 3), level, np.uint8)
    assert np.array_equal(camera.resampling(flat, severity, np.random.default_rng(seed)), flat)


def test_resampling_by_the_nearest_repeats_pixels() -> None:
    checkers = np.indices((8, 8)).sum(axis=0).astype(np.uint8)[..., np.newaxis] % 2 * 255
    halved = camera.resampled(checkers, 0.5, cv2.INTER_NEAREST, cv2.INTER_NEAREST)
    assert not halved.any()


def test_shifts_by_whole_pixels_move_and_repeat_the_border(image: Image) -> None:
    right = camera.shifted(image, 3, 0)
    assert np.array_equal(right[:, 3:], image[:, :-3])
    assert np.array_equal(right[:, :3], np.repeat(image[:, :1], 3, axis=1))
    up = camera.shifted(image, 0, -2)
    assert np.array_equal(up[:-2], image[2:])
    assert np.array_equal(up[-2:], np.repeat(image[-1:], 2, axis=0))


def test_half_a_pixel_is_the_mean_of_two() -> None:
    row = np.array([[0, 10, 30, 30]], np.uint8)[..., np.newaxis]
    assert camera.shifted(row, 0.5, 0).ravel().tolist() == [0, 5, 20, 30]
    assert camera.shifted(row, -0.5, 0).ravel().tolist() == [5, 20, 30, 30]


def test_a_letterbox_has_bars_of_its_share_and_the_whole_picture() -> None:
    picture = np.tile(np.linspace(50, 250, 64).astype(np.uint8)[:, np.newaxis, np.newaxis], (64, 3))
    boxed = camera.letterboxed(picture, 0.25, 0).astype(float)
    assert not boxed[:8].any()
    assert not boxed[56:].any()
    assert boxed[8:56].mean() == pytest.approx(picture.mean(), abs=0.5)
    assert boxed[8, 0, 0] == pytest.approx(50, abs=3)
    assert boxed[55, 0, 0] == pytest.approx(250, abs=3)
    assert np.array_equal(camera.letterboxed(picture.swapaxes(0, 1), 0.25, 1), boxed.swapaxes(0, 1))
