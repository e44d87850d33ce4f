"""Holm's correction, and the confidence of intervals that hold together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.statistics.multiple_comparisons import holm, simultaneous


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12))
def test_holm_keeps_the_order_and_makes_nothing_more_certain(ps: list[float]) -> None:
    corrected = holm(ps)
    assert all(p <= after <= 1.0 for p, after in zip(ps, corrected, strict=True))
    by_p = [corrected[i] for i in sorted(range(len(ps)), key=ps.__getitem__)]
    assert by_p == sorted(by_p)
    assert min(corrected) == pytest.approx(min(1.0, len(ps) * min(ps)))
    # As in his paper:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.floats(0.5, 0.999), st.integers(0, 1000))
def test_independent_intervals_hold_together_as_often_as_was_asked(
    confidence: float, intervals: int
) -> None:
    each = simultaneous(confidence, intervals)
    assert each ** max(1, intervals) == pytest.approx(confidence)
    assert confidence <= each + 1e-12 < 1.0
