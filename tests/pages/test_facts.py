"""Figures as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.pages.facts import number, shortened, significant

WORDS = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}


@given(
    st.floats(-9.99e14, 9.99e14).filter(lambda value: not 0.0 < abs(value) < 1e-4),
    st.integers(2, 4),
)
def test_a_figure_keeps_its_significant_digits_without_an_exponent(
    value: float, digits: int
) -> None:
    said = significant(value, digits)
    number, _, word = said.partition(" ")
    read = float(number.replace(",", "")) * WORDS.get(word, 1.0)
    assert "e" not in number
    assert read == pytest.approx(value, rel=0.5 * 10.0 ** (1 - digits), abs=0.0)
    assert bool(word) is (abs(read) >= 1e5)


def test_whole_numbers_stand_in_full_up_to_99999() -> None:
    said = [significant(one) for one in (0.0123, 12.345, 1234.5, 50_211.0, 99_999.4, 99_999.6)]
    assert said == ["0.0123", "12.3", "1,234", "50,211", "99,999", "100 thousand"]
    assert [significant(one) for one in (2_147_483_648.0, 1.2e30)] == ["2.15 billion", "1.2e+30"]
    assert [significant(one, 2, "+") for one in (0.5, 123.0, -123.0)] == ["+0.5", "+123", "-123"]


@pytest.mark.parametrize(
    ("text", "most", "said"),
    [
        ("0.0645 ms instead of 0.0612", 27, "0.0645 ms instead of 0.0612"),
        ("0.0645 ms instead of 0.0612", 26, "0.0645 ms instead of …"),
        ("0.0645 ms instead of 1,234", 24, "0.0645 ms instead of …"),
        ("0.0645 ms instead of 12 ms", 24, "0.0645 ms instead of 12…"),
        ("of operator conv2d_1234", 22, "of operator conv2d_12…"),
        ("0123456789", 5, "0123…"),
    ],
)
def test_no_figure_is_cut(text: str, most: int, said: str) -> None:
    assert shortened(text, most) == said


def test_what_rounds_to_nothing_has_no_minus() -> None:
    assert [number(value, 2, "+") for value in (-0.004, -0.006, 0.0)] == ["+0.00", "-0.01", "+0.00"]
    assert [number(value, 0) for value in (-0.4, 1234.5, None)] == ["0", "1,234", "–"]
