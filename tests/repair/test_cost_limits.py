"""Tests of edgeflare.repair.cost_limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.errors import UserError
from edgeflare.repair.cost_limits import (
    DEFAULT,
    CostLimit,
    latency_limit,
    least_limit,
    size_limit,
)

AMOUNTS = st.floats(1e-6, 1e9)


@pytest.mark.parametrize("text", ["+1%", "1%", " + 1 % ", "1.0%"])
def test_a_percentage_is_a_share(text: str) -> None:
    assert size_limit(text) == latency_limit(text) == CostLimit(share=0.01)


@pytest.mark.parametrize(
    ("text", "extra"), [("+2KiB", 2048), ("2 kib", 2048), ("+.5MiB", 2**19), ("0B", 0)]
)
def test_a_size_may_be_in_bytes(text: str, extra: int) -> None:
    limit = size_limit(text)
    assert limit is not None
    assert limit.allows(1000, 1000 + extra)
    assert not limit.allows(1000, 1001 + extra)


@pytest.mark.parametrize(("text", "seconds"), [("+20us", 2e-5), ("20µs", 2e-5), ("1.5ms", 1.5e-3)])
def test_a_latency_may_be_in_seconds(text: str, seconds: float) -> None:
    limit = latency_limit(text)
    assert limit is not None
    assert limit.allows(1.0, 1.0 + 0.999 * seconds)
    assert not limit.allows(1.0, 1.0 + 1.001 * seconds)


@pytest.mark.parametrize(
    "text", ["", "%", "-1%", "1", "+1e3%", "1 ms", "two", "+1%%", "9" * 400 + "%"]
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(
        UserError, match=r"--max-size .* is no limit: .* B, KiB, MiB, .* \+2KiB, or none"
    ):
        size_limit(text)


@pytest.mark.parametrize("text", ["2KiB", "+5", "nan%", "inf us"])
def test_what_is_no_latency_is_refused(text: str) -> None:
    with pytest.raises(
        UserError, match=r"--max-latency .* is no limit: .* us, µs, ms, s, .*20us, or none"
    ):
        latency_limit(text)


def limited(text: str) -> CostLimit:
    limit = size_limit(text)
    assert limit is not None
    return limit


@given(AMOUNTS, st.floats(0.5, 3.0))
def test_the_least_limit_allows_the_candidate_and_a_lower_one_does_not(
    before: float, factor: float
) -> None:
    after = before * factor
    text = least_limit(before, after)
    assert limited(text).allows(before, after)
    percent = float(text[1:-1])
    if percent >= 0.2:
        assert not limited(f"{percent - 0.2:.1f}%").allows(before, after)


def test_what_grew_by_nothing_needs_no_limit() -> None:
    assert least_limit(100, 90) == "+0%"
    assert least_limit(43_800, 44_100) == "+0.7%"


def test_both_limits_are_five_percent_unless_none_lifts_them() -> None:
    assert size_limit(DEFAULT) == latency_limit(DEFAULT) == CostLimit(share=0.05)
    assert size_limit("none") is None
    assert latency_limit(" None ") is None
