"""Outputs that the device cuts off where its tensor ends."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.core.tensor import Tensor
from edgeflare.run.systematic.saturation import Saturation, saturations
from edgeflare.tasks.classification import ClassDecoder
from edgeflare.tasks.clip_frames import NO_CLIP
from edgeflare.tasks.value_decoder import Measure, ValueDecoder

KINDS = {"mine": "float32", "its": "int8"}

SCALE = 0.05
"""With the zero point -128 an int8 output then holds 0 to 12.75."""


def cut(wanted: NDArray[np.float64], dtype: str) -> list[Saturation]:
    """What is found of a device that holds 0 to 12.75, as an int8 output or in float32 behind."""
    raw = np.clip(np.round(wanted / SCALE) - 128, -128, 127)
    given = raw.astype(np.int8)
    if dtype == "float32":
        given = ((raw + 128) * SCALE).astype(np.float32)
    return found(wanted, Tensor("its", (1, wanted.shape[1]), dtype, SCALE, -128), given)


def found(
    wanted: NDArray[np.float64], tensor: Tensor, given: NDArray[np.generic]
) -> list[Saturation]:
    mine = (Tensor("mine", (1, wanted.shape[1]), "float32"),)
    measure = Measure(1.0, "absolute")
    return saturations(
        ValueDecoder(mine, 0, measure, NO_CLIP),
        wanted.astype(np.float32),
        ValueDecoder((tensor,), 0, measure, NO_CLIP),
        given,
    )


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_the_share_beyond_the_range_is_told_by_side(dtype: str) -> None:
    rng = np.random.default_rng(0)
    wanted = rng.uniform(0.0, 12.0, (50, 20))
    wanted[:, 3] = 20.0
    wanted[:40, 4] = -5.0
    low, high = cut(wanted, dtype)
    assert (low.side, low.share, low.values, low.of) == ("low", 0.04, 1, 20)
    assert (high.side, high.share, high.values) == ("high", 0.05, 1)
    assert low.end == 0.0
    assert high.end == pytest.approx(12.75)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_what_fits_or_is_rounded_or_rare_is_not_told(dtype: str) -> None:
    rng = np.random.default_rng(1)
    wanted = rng.uniform(0.0, 12.7, (50, 20))
    wanted[0, 0] = 40.0
    wanted[:, 1] = 12.75 + SCALE
    assert not cut(wanted, dtype)


def test_scores_that_are_not_decided_may_be_cut_off() -> None:
    wanted = np.random.default_rng(3).normal(scale=9.0, size=(50, 20))
    mine, its = (Tensor(name, (1, 20), kind, SCALE, 0) for name, kind in KINDS.items())
    given = np.clip(np.round(wanted / SCALE), -128, 127).astype(np.int8)
    both = saturations(
        ClassDecoder(mine, "logits"), wanted.astype(np.float32), ClassDecoder(its, "logits"), given
    )
    assert [one.side for one in both] == ["high"]


def test_a_float_output_has_no_end() -> None:
    """Neither has one that is lower than the original's throughout."""
    wanted = np.random.default_rng(2).uniform(0.0, 12.7, (50, 20))
    tensor = Tensor("its", (1, 20), "float32")
    assert not found(wanted, tensor, (wanted / 2).astype(np.float32))
    steps = np.round(wanted / 2 / SCALE) * SCALE
    assert not found(wanted, tensor, steps.astype(np.float32))
