from __future__ import annotations

from math import exp, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.survey.rare_events.rare_rate import repetition_interval


def test_the_limits_are_those_of_students_t_on_a_logarithmic_scale() -> None:
    width = 4.302653 * (1e-4 / sqrt(3)) / 2e-4  # the table's value for 2 degrees of freedom
    expected = (2e-4, 2e-4 * exp(-width), 2e-4 * exp(width))
    assert repetition_interval([1e-4, 2e-4, 3e-4], 0.95) == pytest.approx(expected)


def test_about_as_many_intervals_hold_as_said() -> None:
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(1000):
        _, low, high = repetition_interval(rng.lognormal(-0.125, 0.5, 10).tolist(), 0.95)
        held += low <= 1.0 <= high
    assert 930 <= held <= 970


@given(st.lists(st.floats(0.0, 1e-2), min_size=2, max_size=12), st.floats(1e-9, 1e-2))
def test_an_interval_holds_its_estimate_and_scales(values: list[float], scale: float) -> None:
    estimate, low, high = repetition_interval(values, 0.9)
    assert 0.0 <= low <= estimate <= high <= 1.0
    if estimate > 1e-12 and high < 1.0:
        scaled = repetition_interval([scale * one for one in values], 0.9)
        assert scaled == pytest.approx((scale * estimate, scale * low, scale * high))


@given(st.lists(st.floats(0.8, 1.2), min_size=2, max_size=12))
def test_limits_of_what_nearly_always_happens_are_shares(values: list[float]) -> None:
    _, low, high = repetition_interval(values, 0.95)
    assert 0.0 < low <= high <= 1.0


@pytest.mark.parametrize("values", [[0.0, 0.0], [-1e-5, 0.5e-5]])
def test_nothing_found_has_no_interval(values: list[float]) -> None:
    assert repetition_interval(values, 0.95) == (0.0, 0.0, 0.0)
