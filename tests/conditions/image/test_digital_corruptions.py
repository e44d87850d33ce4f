from __future__ import annotations

import numpy as np
import pytest

from edgeflare.conditions.image import digital_corruptions as digital
from edgeflare.conditions.image.gray_levels import Image
from edgeflare.conditions.image.severity_parameters import whole
from published_corruptions import is_equal, recording


@pytest.mark.parametrize("size", ["small", "large"])
def test_digital_corruptions_are_the_published_ones(size: str) -> None:
    published = recording(size)
    image = published.image

    def saturated(severity: int) -> Image:
        factor, summand = published.row(digital.SATURATE, severity)
        return digital.saturated(image, factor, summand)

    ours = {
        "contrast": lambda severity: digital.flattened(
            image, published.parameter(digital.CONTRAST, severity)
        ),
        "saturate": saturated,
    }
    for name, made in ours.items():
        assert is_equal(published.differences(name, made)), name


@pytest.mark.parametrize("size", ["small", "large"])
def test_boxes_and_jpeg_are_the_published_ones_without_any_difference(size: str) -> None:
    published = recording(size)
    image = published.image
    ours = {
        "pixelate": lambda severity: digital.pixelated(
            image, published.parameter(digital.PIXELATE, severity)
        ),
        "jpeg_compression": lambda severity: digital.through_jpeg(
            image, whole(published.parameter(digital.JPEG, severity))
        ),
    }
    for name, made in ours.items():
        assert not published.differences(name, made).any(), name


def test_saturation_leaves_images_of_one_channel() -> None:
    gray = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)
    for severity in (1, 2, 3, 4, 5):
        assert np.array_equal(digital.saturate(gray, severity, np.random.default_rng(0)), gray)


def test_pixels_become_boxes_of_their_mean() -> None:
    image = np.arange(64, dtype=np.uint8).reshape(8, 8, 1)
    halved = digital.pixelated(image, 0.5)[..., 0]
    assert halved[:2, :4].tolist() == [[5, 5, 7, 7]] * 2
    assert halved.mean() == pytest.approx(image.mean() + 0.5)
