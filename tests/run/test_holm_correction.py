"""Tests of edgeflare.run.holm_correction."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.run.holm_correction import holm

PS = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12)


def test_holm_as_in_his_paper() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(PS)
def test_holm_keeps_the_order_and_makes_nothing_more_certain(ps: list[float]) -> None:
    corrected = holm(ps)
    assert all(p <= after <= 1.0 for p, after in zip(ps, corrected, strict=True))
    by_p = [corrected[i] for i in sorted(range(len(ps)), key=ps.__getitem__)]
    assert by_p == sorted(by_p)
    assert min(corrected) == pytest.approx(min(1.0, len(ps) * min(ps)))
