"""Ranges: what they lose on values, against quantizing the values themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.models.quantized_range import (
    QuantizedRange,
    least_error_range,
    range_of,
    squared_errors,
)
from edgeflare.models.tflite_graph import GraphTensor

SEEDS = st.integers(0, 2**32 - 1)


def drawn(seed: int) -> NDArray[np.float64]:
    """Values with tails of some length, half of them cut off at zero or not."""
    rng = np.random.default_rng(seed)
    values = rng.standard_t(rng.integers(2, 30), 4000) * 10 ** rng.uniform(-3, 3)
    return np.asarray(np.maximum(values, 0) if seed % 2 else values)


@settings(max_examples=25)
@given(SEEDS, st.floats(0.1, 1.2), st.floats(0.1, 1.2), st.sampled_from([255, 65535]))
def test_the_error_is_that_of_quantizing(seed: int, low: float, high: float, steps: int) -> None:
    values = drawn(seed)
    tried = QuantizedRange(low * min(0.0, values.min()), high * values.max(), steps)
    (found,) = squared_errors(np.sort(values), np.array([[tried.low, tried.high]]), steps)
    wanted = tried.squared_error(values) * len(values)
    assert found == pytest.approx(wanted, rel=0.15)


@settings(max_examples=25)
@given(SEEDS)
def test_the_chosen_range_is_no_worse_than_the_known_one_or_all_values(seed: int) -> None:
    values = drawn(seed)
    known = QuantizedRange(0.6 * min(0.0, values.min()), 0.6 * values.max())
    whole = QuantizedRange(min(0.0, values.min()), values.max())
    found = least_error_range(values, known)
    assert found.low <= 0 <= found.high
    assert -128 <= found.quantization[1] <= 127
    error = found.squared_error(values)
    for other in (known, whole):
        assert error <= 1.1 * other.squared_error(values)


@settings(max_examples=25)
@given(SEEDS)
def test_a_range_of_16_bits_stays_the_same_on_both_sides_of_zero(seed: int) -> None:
    values = drawn(seed)
    found = least_error_range(values, QuantizedRange(-1e9, 1e9, 65535))
    assert found.low == -found.high
    assert found.squared_error(values) < QuantizedRange(-1e9, 1e9, 65535).squared_error(values)


@given(st.floats(1e-6, 1e6), st.integers(-128, 127))
def test_a_range_has_the_quantization_that_it_is_of(scale: float, zero_point: int) -> None:
    scale = float(np.float32(scale))
    tensor = GraphTensor(0, "y", (1,), "int8", (scale,), (zero_point,), 0, constant=False)
    known = range_of(tensor)
    assert known is not None
    found, point = known.quantization
    assert found == pytest.approx(scale, rel=1e-6)
    assert point == zero_point
    raw = np.arange(-128, 128, dtype=np.int8)
    assert known.nearest(tensor.real(raw)) == pytest.approx(tensor.real(raw), rel=1e-9)


def test_values_that_are_all_zero_keep_the_known_range() -> None:
    known = QuantizedRange(-1.0, 2.0)
    assert least_error_range(np.zeros(10), known) == known
