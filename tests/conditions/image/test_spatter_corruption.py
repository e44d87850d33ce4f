from __future__ import annotations

import numpy as np
import pytest

from edgeflare.conditions.image.spatter_corruption import MUD, SPATTER, spattered
from published_corruptions import is_equal, recording


@pytest.mark.parametrize("size", ["small", "large"])
def test_spatter_is_the_published_one_of_the_same_draws(size: str) -> None:
    published = recording(size)
    normal = published.normal[..., 0].astype(np.float64)
    differences = published.differences(
        "spatter",
        lambda severity: spattered(published.image, published.row(SPATTER, severity), normal),
    )
    assert is_equal(differences)


@pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
def test_without_drops_an_image_stays(severity: int) -> None:
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    nothing = np.full((20, 30), -10.0)
    assert np.array_equal(spattered(image, SPATTER.small[severity - 1], nothing), image)


def test_thick_mud_covers_an_image() -> None:
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    everywhere = np.full((20, 30), 10.0)
    muddy = spattered(image, SPATTER.small[4], everywhere)
    assert np.abs(muddy - MUD).max() <= 1
