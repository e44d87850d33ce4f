from __future__ import annotations

import numpy as np
import pytest

from edgeflare.conditions.image import blur_corruptions as blurs
from edgeflare.conditions.image.gaussian_smoothing import smoothed
from edgeflare.conditions.image.gray_levels import Image, gray_levels
from edgeflare.conditions.image.motion_smear import smeared
from edgeflare.conditions.image.severity_parameters import whole
from published_corruptions import Recording, is_equal, recording


def through_glass(published: Recording, severity: int) -> Image:
    sigma, distance, times = published.row(blurs.GLASS, severity)
    moves = published.moves(whole(distance), whole(times))
    return blurs.through_glass(published.image, sigma, whole(distance), moves)


def smooth(published: Recording, severity: int) -> Image:
    sigma = published.parameter(blurs.GAUSSIAN_SIGMA, severity)
    return gray_levels(smoothed(published.image.astype(np.float32), sigma))


def in_motion(published: Recording, severity: int) -> Image:
    radius, sigma = published.row(blurs.MOTION, severity)
    angle = published.stored["motion_angles"][severity - 1]
    return smeared(published.image, radius, sigma, angle)


def out_of_focus(published: Recording, severity: int) -> Image:
    radius, sigma = published.row(blurs.DEFOCUS, severity)
    return blurs.out_of_focus(published.image, radius, sigma)


def approached(published: Recording, severity: int) -> Image:
    count, step = published.row(blurs.ZOOM, severity)
    return blurs.approached(published.image, whole(count), step)


@pytest.mark.parametrize("size", ["small", "large"])
def test_blurs_are_the_published_ones_of_the_same_draws(size: str) -> None:
    published = recording(size)
    ours = {
        "motion_blur": lambda severity: in_motion(published, severity),
        "zoom_blur": lambda severity: approached(published, severity),
        "gaussian_blur": lambda severity: smooth(published, severity),
    }
    for name, made in ours.items():
        assert is_equal(published.differences(name, made)), name


@pytest.mark.parametrize("size", ["small", "large"])
def test_glass_is_the_published_one_of_the_same_draws_without_any_difference(size: str) -> None:
    published = recording(size)
    differences = published.differences(
        "glass_blur", lambda severity: through_glass(published, severity)
    )
    assert not differences.any()


@pytest.mark.parametrize("size", ["small", "large"])
def test_defocus_is_the_published_one_within_a_gray_level(size: str) -> None:
    """Means of few pixels are often whole gray levels, which either of the two may cut off."""
    published = recording(size)
    differences = published.differences(
        "defocus_blur",
        lambda severity: out_of_focus(published, severity),
    )
    assert np.abs(differences).max() <= 1
    assert (differences != 0).mean(axis=(1, 2, 3)).max() < 0.15


def test_glass_copies_pixels_in_turn() -> None:
    """The same as the loop over pixels that it stands for."""
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (13, 19, 3), np.uint8)
    reach = 2
    moves = rng.integers(-reach, reach, (2, 13, 19, 2))
    expected = image.copy()
    for each in moves:
        for row in range(13 - reach, reach, -1):
            for column in range(19 - reach, reach, -1):
                right, down = each[row, column]
                expected[row, column] = expected[row + down, column + right]
    # Smoothing by so small a sigma changes nothing.
    assert np.array_equal(blurs.through_glass(image, 0.05, reach, moves), expected)


def test_motion_smears_along_its_angle_alone() -> None:
    stripes = np.repeat(np.arange(0, 250, 10, dtype=np.uint8)[:, np.newaxis], 30, axis=1)
    image = stripes[..., np.newaxis]
    assert np.array_equal(smeared(image, 6, 2, 0.0), image)
    assert not np.array_equal(smeared(image, 6, 2, 90.0), image)
