"""A condition as the functions of other packages make it: what they may not do."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflare.conditions.condition import condition
from edgeflare.core.input import Input
from edgeflare.errors import UserError

RNG = np.random.default_rng(0)


@condition("overwriting", domain="image", summary="one that writes into its input")
def overwriting(image: Input, _severity: float, _rng: np.random.Generator) -> Input:
    image[:] = 0
    return image


@condition("failing", domain="image", summary="one that fails")
def failing(_image: Input, _severity: float, _rng: np.random.Generator) -> Input:
    raise KeyError("boom")


@condition("other-dtype", domain="image", summary="one that returns another dtype")
def other_dtype(image: Input, _severity: float, _rng: np.random.Generator) -> Input:
    return image / 2.0


def test_a_condition_cannot_write_into_its_input() -> None:
    image = np.full((8, 8, 1), 7, dtype=np.uint8)
    with pytest.raises(UserError, match=r"'overwriting' of package .* fails at severity 3"):
        overwriting(image, 3, RNG)
    assert (image == 7).all()
    assert image.flags.writeable


def test_a_condition_that_fails_is_named() -> None:
    with pytest.raises(UserError, match=r"'failing' of package .*KeyError: 'boom'"):
        failing(np.zeros((8, 8, 1), dtype=np.uint8), 1, RNG)


def test_another_dtype_is_refused() -> None:
    with pytest.raises(UserError, match="returned float64 of shape"):
        other_dtype(np.zeros((8, 8, 1), dtype=np.uint8), 1, RNG)
