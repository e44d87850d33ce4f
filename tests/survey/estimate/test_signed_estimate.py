"""Tests of edgeflare.survey.estimate.signed_estimate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.survey.estimate.signed_estimate import simultaneous


@given(st.floats(0.5, 0.999), st.integers(1, 1000))
def test_independent_intervals_hold_together_as_often_as_was_asked(
    confidence: float, intervals: int
) -> None:
    each = simultaneous(confidence, intervals)
    assert each**intervals == pytest.approx(confidence)
    assert confidence <= each < 1.0


def test_one_interval_keeps_its_confidence_and_none_needs_any() -> None:
    assert simultaneous(0.95, 1) == simultaneous(0.95, 0) == pytest.approx(0.95)
