"""Ranges of logits, judged by the probabilities that come of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.models.quantized_range import QuantizedRange
from edgeflare.repair.fitting.logit_range import logit_range


def probabilities(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def loss(logits: NDArray[np.float64], tried: QuantizedRange) -> float:
    step = (tried.high - tried.low) / 255
    rounded = tried.low + step * np.clip(np.round((logits - tried.low) / step), 0, 255)
    return float(np.sqrt(((probabilities(rounded) - probabilities(logits)) ** 2).mean()))


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.floats(-50, 50))
def test_probabilities_suffer_less_than_from_the_range_of_all_logits(
    seed: int, shift: float
) -> None:
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(600, 10)) * 3 + shift
    logits[:, 0] -= 25  # a class far below all others takes most of a range
    logits[np.arange(600), rng.integers(1, 10, 600)] += rng.uniform(0, 12, 600)
    found = logit_range(logits)
    assert found is not None
    whole = QuantizedRange(min(0.0, logits.min()), max(0.0, logits.max()))
    assert found.high - found.low < 0.8 * (whole.high - whole.low)
    assert loss(logits, found) < loss(logits, whole)


def test_the_range_moves_with_the_logits() -> None:
    logits = np.random.default_rng(4).normal(size=(200, 5)) * 4
    first, second = logit_range(logits), logit_range(logits + 10)
    assert first is not None
    assert second is not None
    assert second.low == pytest.approx(first.low + 10)


def test_logits_that_are_alike_have_no_range() -> None:
    assert logit_range(np.zeros((20, 10))) is None
