"""Tests of edgeflare.repair.candidate_choice: when a candidate surely gains."""

from __future__ import annotations

from edgeflare.repair.candidate_choice import surely_gains
from judgements import judgement


def test_a_gain_is_sure_where_chance_does_not_explain_it() -> None:
    assert surely_gains(judgement(20, 5))
    assert not surely_gains(judgement(4, 3))
    assert not surely_gains(judgement(5, 20))
    assert not surely_gains(judgement(0, 0))
