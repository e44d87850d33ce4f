from __future__ import annotations

import numpy as np
import pytest

from edgeflare.conditions.image.elastic_corruption import ELASTIC, deformed
from published_corruptions import is_equal, recording


@pytest.mark.parametrize("size", ["small", "large"])
def test_elastic_deformation_is_the_published_one_of_the_same_draws(size: str) -> None:
    published = recording(size)
    height, width = published.image.shape[:2]
    corners = published.uniform[:6].reshape(3, 2).astype(np.float64)
    fields = published.uniform[6 : 6 + 2 * height * width].reshape(2, height, width)
    differences = published.differences(
        "elastic_transform",
        lambda severity: deformed(
            published.image, published.row(ELASTIC, severity), corners, fields
        ),
    )
    assert is_equal(differences)


def test_without_displacement_an_image_stays() -> None:
    image = np.random.default_rng(0).integers(0, 256, (9, 14, 3), np.uint8)
    still = deformed(image, (0, 0, 0), np.ones((3, 2)), np.ones((2, 9, 14), np.float32))
    assert np.array_equal(still, image)


def test_fields_say_where_pixels_come_from() -> None:
    image = np.random.default_rng(0).integers(0, 256, (9, 14, 1), np.uint8)
    right = np.stack((np.ones((9, 14)), np.zeros((9, 14)))).astype(np.float32)
    moved = deformed(image, (2, 0, 0), np.zeros((3, 2)), right)
    assert np.array_equal(moved[:, :-2], image[:, 2:])
    # Beyond the border, the image is reflected.
    assert np.array_equal(moved[:, -2:], image[:, :-3:-1])
