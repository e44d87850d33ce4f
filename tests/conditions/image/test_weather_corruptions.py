from __future__ import annotations

import numpy as np
import pytest

from edgeflare.conditions.condition import SEVERITIES
from edgeflare.conditions.image import weather_corruptions as weather
from edgeflare.conditions.image.frost_texture import FINE, FULL, frost_texture
from edgeflare.conditions.image.gray_levels import LUMINANCE, Image
from edgeflare.conditions.image.plasma import plasma, plasma_side
from published_corruptions import RECORDED, is_equal, recording

TEXTURES = 1000
MEAN_TOLERANCE = 1.5
"""Gray levels; 0.8 at most were measured."""
VARIANCE_TOLERANCE = 0.1
"""Of 90 variances, the furthest measured were 9.3 % smaller and 7.8 % larger, both of green."""


@pytest.mark.parametrize("size", ["small", "large"])
def test_snow_fog_and_light_are_the_published_ones_of_the_same_draws(size: str) -> None:
    published = recording(size)
    image, normal = published.image, published.normal[..., 0]
    angles = published.stored["snow_angles"]
    uniform = published.uniform[: plasma_side(*image.shape[:2]) ** 2 - 1]

    def fogged(severity: int) -> Image:
        share, decay = published.row(weather.FOG, severity)
        return weather.fogged(image, share, plasma(uniform, decay))

    ours = {
        "snow": lambda severity: weather.snowed(
            image, published.row(weather.SNOW, severity), normal, angles[severity - 1]
        ),
        "fog": fogged,
        "brightness": lambda severity: weather.brightened(
            image, published.parameter(weather.BRIGHTNESS, severity)
        ),
    }
    for name, made in ours.items():
        assert is_equal(published.differences(name, made)), name


@pytest.mark.slow
@pytest.mark.parametrize(("size", "pitch"), [("small", FINE), ("large", FULL)])
def test_frost_has_the_mean_and_the_variance_of_the_published_one(size: str, pitch: float) -> None:
    """Recorded: means and variances over pixels and draws, 3,000 of 32 pixels or 1,500 of 200.

    Three pictures (each of the large ones enlarged five times, for the published code), at five
    severities, in three channels: as the test of the other corruptions has it, in negative, and
    dark. The five pictures of frost were drawn in turn, not at random.
    """
    image = recording(size).image
    height, width = image.shape[:2]
    rng = np.random.default_rng(7)
    textures = [frost_texture(height, width, pitch, rng) for _ in range(TEXTURES)]
    with np.load(RECORDED / "published_frost.npz") as stored:
        published = stored[size]
    for picture, expected in zip((image, 255 - image, image // 3), published, strict=True):
        for severity in SEVERITIES:
            share, ice = recording(size).row(weather.FROST, severity)
            made = np.array([weather.frosted(picture, share, ice, one) for one in textures])
            mean, variance = expected[severity - 1]
            assert made.mean(axis=(0, 1, 2)) == pytest.approx(mean, abs=MEAN_TOLERANCE)
            assert made.var(axis=(0, 1, 2)) == pytest.approx(variance, rel=VARIANCE_TOLERANCE)


def test_frost_on_gray_images_has_the_luminance_of_the_ice() -> None:
    rng = np.random.default_rng(0)
    texture = frost_texture(20, 30, FINE, rng)
    gray = rng.integers(0, 60, (20, 30, 1), np.uint8)
    coloured = weather.frosted(np.repeat(gray, 3, axis=2), 1, 0.4, texture)
    expected = coloured @ LUMINANCE
    assert np.abs(weather.frosted(gray, 1, 0.4, texture)[..., 0] - expected).max() <= 1


def test_fog_leaves_the_brightest_entry_in_the_densest_place() -> None:
    image = np.full((16, 16, 3), 200, np.uint8)
    field = np.ones((16, 16), np.float32)
    dense = weather.fogged(image, 1.5, field)
    assert np.unique(dense).tolist() == [200]
    assert weather.fogged(image, 1.5, 0 * field).max() == 68  # 200 × 0.784 / (0.784 + 1.5)
    assert np.array_equal(weather.fogged(np.zeros_like(image), 1.5, field), np.zeros_like(image))


def test_brightness_keeps_the_ratios_of_channels() -> None:
    image = np.array([[[100, 50, 0], [0, 0, 0], [250, 125, 250]]], np.uint8)
    assert weather.brightened(image, 0.2).tolist() == [
        [[151, 75, 0], [51, 51, 51], [255, 127, 255]]
    ]
