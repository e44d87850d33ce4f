"""Differences are measured in units, in real values, as an angle and as noise."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from edgeflare.diagnose.tensor_difference import difference
from edgeflare.models.tflite_graph import GraphTensor

QUANTIZED = GraphTensor(0, "t", (2, 3), "int8", (0.5,), (3,), 0, constant=False)
FLOAT = replace(QUANTIZED, dtype="float32", scales=(), zero_points=())
INT8 = arrays.arrays(np.int8, (2, 3))


@given(INT8, INT8)
def test_units_real_values_and_noise_fit_together(a: NDArray[np.int8], b: NDArray[np.int8]) -> None:
    found = difference(QUANTIZED, a, b)
    assert found.max_units is not None
    assert found.max_units == np.abs(a.astype(int) - b).max()
    assert found.max_real == pytest.approx(0.5 * found.max_units)
    assert found.rms_real <= found.max_real + 1e-9
    assert -1.0 <= found.cosine <= 1.0
    assert found.parted == (a != b).any()
    assert (found.snr_db == inf) == (not found.parted)
    json.dumps(found.to_json(), allow_nan=False)


def test_a_difference_of_256_units_does_not_wrap_around() -> None:
    low, high = np.full((2, 3), -128, np.int8), np.full((2, 3), 127, np.int8)
    assert difference(QUANTIZED, low, high).max_units == 255


def test_ten_times_the_noise_is_twenty_decibels() -> None:
    wanted = np.full((2, 3), 100, np.float32)
    little, much = difference(FLOAT, wanted, wanted + 1), difference(FLOAT, wanted, wanted + 10)
    assert little.snr_db - much.snr_db == pytest.approx(20)


def test_float_sums_taken_in_another_order_have_not_parted() -> None:
    wanted = np.array([[1e3, 1, 0], [0, 0, 0]], np.float32)
    assert not difference(FLOAT, wanted, wanted * np.float32(1 + 1e-6)).parted
    assert difference(FLOAT, wanted, wanted + np.float32(0.1)).parted


@given(st.sampled_from([np.nan, np.inf, -np.inf]))
def test_what_is_not_finite_is_as_far_as_can_be(value: float) -> None:
    wanted = np.ones((2, 3), np.float32)
    got = wanted.copy()
    got[0, 0] = value
    found = difference(FLOAT, wanted, got)
    assert found.parted
    json.dumps(found.to_json(), allow_nan=False)
    again = got.copy()
    again[1, 1] *= np.float32(1 + 1e-6)
    assert not difference(FLOAT, got, again).parted  # as far as both are alike


def test_channels_have_scales_of_their_own() -> None:
    tensor = replace(QUANTIZED, scales=(1.0, 10.0), zero_points=(0, 0), axis=0)
    raw = np.ones((2, 3), np.int8)
    assert tensor.real(raw).tolist() == [[1, 1, 1], [10, 10, 10]]
