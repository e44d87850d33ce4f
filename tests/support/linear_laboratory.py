"""A laboratory of linear models whose compression and kernels both deviate on some seeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgeflare.core.query import Arm
from laboratory import CLASSES, SIDE, Laboratory, linear


def linear_laboratory(folder: Path) -> Laboratory:
    """Return a laboratory in which most searches end after a few queries, and one in vain."""
    rng = np.random.default_rng(31)
    images = rng.integers(0, 256, (24, SIDE, SIDE, 1), dtype=np.uint8)
    weights = rng.normal(size=(SIDE * SIDE, CLASSES)).astype(np.float32)
    bent = weights + rng.normal(scale=0.35, size=weights.shape).astype(np.float32)
    skewed = bent + rng.normal(scale=0.25, size=weights.shape).astype(np.float32)
    return Laboratory(
        folder,
        images,
        {Arm.ORIGINAL: linear(weights), Arm.TWIN: linear(bent), Arm.DEVICE: linear(skewed, 0.01)},
    )


@pytest.fixture
def laboratory(tmp_path: Path) -> Laboratory:
    return linear_laboratory(tmp_path)
