from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from driving import SearchCase, linear_model
from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm


@pytest.fixture(scope="session")
def bench() -> SearchCase:
    """Linear models whose labels soon differ: `original`, a coarse `twin`, a coarser `device`."""
    rng = np.random.default_rng(7)
    weights = rng.normal(0.0, 1.0, (4, 12 * 12))
    models = {
        Arm.ORIGINAL: linear_model(weights),
        Arm.TWIN: linear_model(weights + rng.normal(0.0, 0.02, weights.shape)),
        Arm.DEVICE: linear_model(weights + rng.normal(0.0, 0.02, weights.shape), step=0.01),
    }
    return SearchCase(rng.integers(256, size=(12, 12, 1), dtype=np.uint8), models)


@pytest.fixture(scope="session")
def agreeing_bench(bench: SearchCase) -> SearchCase:
    """Models whose labels change often, and together; their probabilities differ."""

    def sharp(image: Input) -> NDArray[np.float64]:
        brightness = int(image.sum())
        top = 0.8 + 0.1 * np.sin(brightness / 1000)
        probabilities = np.full(10, (1 - top) / 9)
        probabilities[brightness // 200 % 10] = top
        return probabilities

    def flatter(image: Input) -> NDArray[np.float64]:
        return 0.9 * sharp(image) + 0.1 / 10

    return SearchCase(bench.seed, {Arm.ORIGINAL: sharp, Arm.TWIN: sharp, Arm.DEVICE: flatter})
