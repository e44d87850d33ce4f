"""Estimates of shares and of paired differences."""

from __future__ import annotations

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.statistics.proportion import (
    ShareEstimate,
    inputs_to_decide,
    paired_difference,
    share,
)


@st.composite
def paired(draw: st.DrawFn) -> tuple[int, int, int]:
    inputs = draw(st.integers(1, 5000))
    lost = draw(st.integers(0, inputs))
    return lost, draw(st.integers(0, inputs - lost)), inputs


@given(paired())
def test_an_interval_contains_what_was_seen(counts: tuple[int, int, int]) -> None:
    lost, won, inputs = counts
    found = paired_difference(lost, won, inputs)
    assert -1.0 <= found.low <= found.value <= found.high <= 1.0
    assert found.value == (lost - won) / inputs


@given(paired())
def test_what_is_lost_one_way_is_won_the_other(counts: tuple[int, int, int]) -> None:
    lost, won, inputs = counts
    one, other = paired_difference(lost, won, inputs), paired_difference(won, lost, inputs)
    assert (one.value, one.low) == pytest.approx((-other.value, -other.high))


def test_the_difference_of_the_paper() -> None:
    """Bonett and Price (2012), equation 5, by hand: 14 lost and 3 won of 250."""
    found = paired_difference(14, 3, 250)
    first, second = 15 / 252, 4 / 252
    half = 1.959964 * sqrt((first + second - (first - second) ** 2) / 252)
    assert found.low == pytest.approx(first - second - half)
    assert found.high == pytest.approx(first - second + half)


def test_more_inputs_like_these_would_decide() -> None:
    """None of n changed, of a limit of .5 %: 3.69 / n is the exact end of the interval."""

    def changed(times: float) -> ShareEstimate:
        return share(0, round(200 * times))

    needed = inputs_to_decide(changed, 0.005)
    assert needed is not None
    assert 736 <= needed <= 745
    assert share(0, needed).high <= 0.005

    def at_the_limit(times: float) -> ShareEstimate:
        return share(round(2 * times), round(200 * times))

    assert inputs_to_decide(at_the_limit, 0.01) is None
