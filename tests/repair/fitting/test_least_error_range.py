"""Ranges: what they lose on values, against quantizing the values themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.repair.fitting.least_error_range import (
    Range,
    least_error_range,
    range_of,
    squared_errors,
)
from edgeflare.repair.fitting.summand_range import summand_range

SEEDS = st.integers(0, 2**32 - 1)


def quantized(values: NDArray[np.float64], tried: Range) -> NDArray[np.float64]:
    scale, zero_point = tried.quantization
    raw = np.clip(np.round(values / scale) + zero_point, -128, 127)
    return np.asarray((raw - zero_point) * scale)


def drawn(seed: int) -> NDArray[np.float64]:
    """Values with tails of some length, half of them cut off at zero or not."""
    rng = np.random.default_rng(seed)
    values = rng.standard_t(rng.integers(2, 30), 4000) * 10 ** rng.uniform(-3, 3)
    return np.asarray(np.maximum(values, 0) if seed % 2 else values)


@settings(max_examples=25)
@given(SEEDS, st.floats(0.1, 1.2), st.floats(0.1, 1.2))
def test_the_error_is_that_of_quantizing(seed: int, low: float, high: float) -> None:
    values = drawn(seed)
    tried = Range(low * min(0.0, values.min()), high * values.max())
    (found,) = squared_errors(np.sort(values), np.array([[tried.low, tried.high]]))
    wanted = ((quantized(values, tried) - values) ** 2).sum()
    assert found == pytest.approx(wanted, rel=0.15)


@settings(max_examples=25)
@given(SEEDS)
def test_the_chosen_range_is_no_worse_than_the_known_one_or_all_values(seed: int) -> None:
    values = drawn(seed)
    known = Range(0.6 * min(0.0, values.min()), 0.6 * values.max())
    whole = Range(min(0.0, values.min()), values.max())
    found = least_error_range(values, known)
    assert found.low <= 0 <= found.high
    assert -128 <= found.quantization[1] <= 127
    error = ((quantized(values, found) - values) ** 2).sum()
    for other in (known, whole):
        assert error <= 1.1 * ((quantized(values, other) - values) ** 2).sum()


@given(st.floats(1e-6, 1e6), st.integers(-128, 127))
def test_a_range_has_the_quantization_that_it_is_of(scale: float, zero_point: int) -> None:
    scale = float(np.float32(scale))
    found, point = range_of(scale, zero_point).quantization
    assert found == pytest.approx(scale, rel=1e-6)
    assert point == zero_point


def test_values_that_are_all_zero_keep_the_known_range() -> None:
    known = Range(-1.0, 2.0)
    assert least_error_range(np.zeros(10), known) == known
    assert summand_range(np.zeros(10), np.ones(10), (0.0, np.inf), known) == known


def test_what_an_activation_cuts_off_of_a_sum_gets_no_steps() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=20_000)
    others = np.maximum(rng.normal(size=20_000), 0) / 4
    known = Range(float(values.min()), float(values.max()))
    alone = least_error_range(values, known)
    found = summand_range(values, others, (0.0, np.inf), known)
    assert alone.low < 0.8 * values.min()
    assert found.low > 0.6 * values.min()

    def error(tried: Range) -> float:
        made = np.maximum(quantized(values, tried) + others, 0)
        return float(((made - np.maximum(values + others, 0)) ** 2).sum())

    assert error(found) < 0.7 * error(alone)
