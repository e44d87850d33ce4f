"""Tests of edgeflare.run.sign_test."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.run.sign_test import sign_test

COUNTS = st.integers(0, 120)


@given(COUNTS, COUNTS)
def test_p_is_the_sum_of_both_tails_of_the_binomial_distribution(better: int, worse: int) -> None:
    changed = better + worse
    uneven = abs(better - worse)
    hits = sum(comb(changed, k) for k in range(changed + 1) if abs(2 * k - changed) >= uneven)
    assert sign_test(better, worse) == pytest.approx(hits / 2**changed, rel=1e-9)


@given(COUNTS, COUNTS)
def test_both_directions_have_the_same_p(better: int, worse: int) -> None:
    assert sign_test(better, worse) == sign_test(worse, better)


def test_five_of_five_are_not_significant_and_six_are() -> None:
    assert sign_test(5, 0) == pytest.approx(0.0625)
    assert sign_test(6, 0) == pytest.approx(0.03125)
    assert sign_test(0, 0) == 1.0
