"""Intervals from repetitions, and limits where nothing was seen."""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.survey.rare.repetition_interval import repetition_interval, unseen_limit

SCALES = st.floats(1e-9, 1e-2)


def test_the_limits_are_those_of_students_t_on_a_logarithmic_scale() -> None:
    estimate, low, high = repetition_interval([1e-4, 2e-4, 3e-4], 0.95)
    width = 4.302653 * (1e-4 / sqrt(3)) / 2e-4  # the table's value for 2 degrees of freedom
    assert estimate == pytest.approx(2e-4)
    assert low == pytest.approx(2e-4 * exp(-width))
    assert high == pytest.approx(2e-4 * exp(width))


def test_about_as_many_intervals_hold_as_said() -> None:
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(1000):
        _, low, high = repetition_interval(rng.lognormal(-0.125, 0.5, 10).tolist(), 0.95)
        held += low <= 1.0 <= high
    assert 930 <= held <= 970


@given(st.lists(st.floats(0.0, 1e-2), min_size=2, max_size=12), SCALES)
def test_an_interval_holds_its_estimate_and_scales(values: list[float], scale: float) -> None:
    estimate, low, high = repetition_interval(values, 0.9)
    assert 0.0 <= low <= estimate <= high <= 1.0
    if estimate > 1e-12 and high < 1.0:
        scaled = repetition_interval([scale * one for one in values], 0.9)
        assert scaled == pytest.approx((scale * estimate, scale * low, scale * high))


def test_nothing_found_has_no_interval() -> None:
    assert repetition_interval([0.0, 0.0], 0.95) == (0.0, 0.0, 0.0)
    assert repetition_interval([-1e-5, 0.5e-5], 0.95) == (0.0, 0.0, 0.0)


def test_the_limit_is_of_the_heaviest_shell_without_a_surprise() -> None:
    weight = np.asarray([0.9, 0.09, 0.01])
    asked = np.asarray([300, 10, 5])
    assert unseen_limit(weight, asked, np.asarray([0, 0, 2]), 0.95) == pytest.approx(
        0.09 * log(40) / 10
    )
    assert unseen_limit(weight, asked, np.asarray([1, 1, 2]), 0.95) == 0.0


def test_a_shell_that_was_not_asked_may_be_all_events() -> None:
    weight, none = np.asarray([0.3, 0.7]), np.zeros(2, dtype=np.int64)
    assert unseen_limit(weight, none, none, 0.95) == pytest.approx(0.7)


def test_events_above_the_limit_are_rarely_missed() -> None:
    weight, asked = np.asarray([0.8, 0.2]), np.asarray([200, 100])
    limit = unseen_limit(weight, asked, np.zeros(2, dtype=np.int64), 0.95)
    for shell in range(2):  # a rate that reaches the limit in one shell alone
        assert (1.0 - limit / weight[shell]) ** asked[shell] <= 0.0251
