"""The exact test by flips of signs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edgeflare.statistics.binomial import sign_test
from edgeflare.statistics.sign_flips import LEAST_P, sign_flip_test


@given(st.lists(st.integers(-9, 9), max_size=9), st.sampled_from([1, 1.05, 1.5]))
@example([1, 1, 1, 1, -2], 1.5)
def test_p_is_the_share_of_all_choices_of_signs(sums: list[int], unit: float) -> None:
    flips = product((1, -1), repeat=len(sums))
    totals = [abs(sum(map(int.__mul__, signs, sums))) for signs in flips]
    expected = sum(total >= abs(sum(sums)) for total in totals) / len(totals)
    assert sign_flip_test(unit * np.array(sums, np.float64)) == pytest.approx(expected)


def test_what_is_left_of_equal_estimates_by_rounding_is_no_change() -> None:
    assert sign_flip_test(np.full(9, 0.1 + 0.2 - 0.3)) == 1.0


@given(st.integers(0, 60), st.integers(0, 60), st.sampled_from([1, 1 / 3, 700.7]))
def test_of_equal_sizes_it_is_the_sign_test(better: int, worse: int, size: float) -> None:
    sums = np.repeat(np.array([size, -size, 0]), (better, worse, 3))
    expected = max(sign_test(better, worse), LEAST_P)
    assert sign_flip_test(sums) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_many_small_sums_are_not_rounded_to_nothing() -> None:
    sums = np.repeat(np.array([1.0, -1.0]) / 3, (5100, 4900))
    assert sign_flip_test(sums) == pytest.approx(sign_test(5100, 4900), rel=1e-6)
