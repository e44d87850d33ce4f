"""What the compressed model of a pair is given on its seeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from edgeflare.models.pair import load_pair
from edgeflare.models.seed_tensors import seed_tensors

EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"


def test_seeds_are_encoded_as_the_model_takes_them() -> None:
    given = seed_tensors(load_pair(EXAMPLE), 2)
    assert given is not None
    assert (given.shape, given.dtype.name) == ((2, 1, 28, 28, 1), "int8")
    # Two seeds of which each is an image: dark corners, and something in the middle.
    assert (given[:, 0, 0, 0, 0] == -128).all()
    assert not np.array_equal(given[0], given[1])
    assert (given.max(axis=(1, 2, 3, 4)) > 0).all()
