from __future__ import annotations

import numpy as np
import pytest

from edgeflare.conditions.image import noise_corruptions as noises
from edgeflare.conditions.image.noise_corruptions import (
    from_photons,
    with_impulses,
    with_noise,
    with_speckles,
)
from published_corruptions import is_equal, recording


@pytest.mark.parametrize("size", ["small", "large"])
def test_noises_are_the_published_ones_of_the_same_draws(size: str) -> None:
    published = recording(size)
    image, normal = published.image, published.normal
    chosen, sign = published.salt_and_pepper
    counts = published.stored["counts"]
    ours = {
        "gaussian_noise": lambda severity: with_noise(
            image, published.parameter(noises.GAUSSIAN, severity), normal
        ),
        "shot_noise": lambda severity: from_photons(
            counts[severity - 1], published.parameter(noises.SHOT, severity)
        ),
        "impulse_noise": lambda severity: with_impulses(
            image, published.parameter(noises.IMPULSE, severity), chosen, sign
        ),
        "speckle_noise": lambda severity: with_speckles(
            image, published.parameter(noises.SPECKLE, severity), normal
        ),
    }
    for name, made in ours.items():
        assert is_equal(published.differences(name, made)), name


def test_shot_noise_has_the_mean_of_the_image_and_the_variance_of_counted_light() -> None:
    gray = np.full((60, 60, 3), 102, np.uint8)
    noisy = noises.shot_noise(gray, 1, np.random.default_rng(0)).astype(np.float64)
    # 500 photons are white: 102 gray levels are 200, which vary by their root.
    assert noisy.mean() == pytest.approx(102 - 0.5, abs=0.3)
    assert noisy.std() == pytest.approx(200**0.5 * 255 / 500, rel=0.05)


def test_impulses_have_their_share_and_are_black_as_often_as_white() -> None:
    gray = np.full((200, 200, 3), 100, np.uint8)
    noisy = noises.impulse_noise(gray, 5, np.random.default_rng(0))
    assert (noisy == 0).mean() == pytest.approx(0.27 / 2, abs=0.005)
    assert (noisy == 255).mean() == pytest.approx(0.27 / 2, abs=0.005)
    assert set(np.unique(noisy)) == {0, 100, 255}
