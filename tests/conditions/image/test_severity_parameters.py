from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.conditions.image.severity_parameters import (
    SMALL_SIDE,
    SeverityParameters,
    one_parameter,
    whole,
)

TWO = SeverityParameters(
    ((1, 9), (2, 7), (4, 6), (8, 2), (16, 1)), ((0, 0), (10, 1), (20, 2), (30, 3), (40, 4))
)
SMALL = np.zeros((SMALL_SIDE, 500, 3), np.uint8)
LARGE = np.zeros((SMALL_SIDE + 1, 500, 3), np.uint8)


@pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
def test_whole_severities_have_the_parameters_of_the_table(severity: int) -> None:
    assert TWO.at(SMALL, severity) == TWO.small[severity - 1]
    assert TWO.at(LARGE, severity) == TWO.large[severity - 1]


@given(st.floats(1, 5))
def test_between_them_parameters_are_interpolated(severity: float) -> None:
    assert TWO.at(LARGE, severity) == pytest.approx((10 * (severity - 1), severity - 1))
    expected = np.interp(severity, range(1, 6), np.array(TWO.small)[:, 0])
    assert TWO.at(SMALL, severity)[0] == pytest.approx(expected)


def test_one_parameter_is_a_row_of_one() -> None:
    assert one_parameter((1, 2, 3, 4, 5), (2, 4, 6, 8, 10)).at(SMALL, 1.5) == (1.5,)


def test_halves_go_up() -> None:
    assert [whole(value) for value in (0.5, 1.5, 2.5, 2.4, 2.0)] == [1, 2, 3, 2, 2]
