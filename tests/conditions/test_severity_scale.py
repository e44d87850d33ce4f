from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.conditions.severity_scale import at_severity

VALUES = (20.0, 15.0, 10.0, 5.0, 0.0)


@pytest.mark.parametrize(("severity", "value"), [(1, 20.0), (3, 10.0), (5, 0.0), (2.5, 12.5)])
def test_whole_severities_have_their_values_and_others_lie_between(
    severity: float, value: float
) -> None:
    assert at_severity(VALUES, severity) == value


@given(lower=st.floats(1, 5), higher=st.floats(1, 5))
def test_what_falls_from_one_severity_to_the_next_falls_between_them(
    lower: float, higher: float
) -> None:
    lower, higher = sorted((lower, higher))
    assert at_severity(VALUES, lower) >= at_severity(VALUES, higher)
