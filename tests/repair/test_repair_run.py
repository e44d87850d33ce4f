"""Tests of edgeflare.repair.repair_run: when a repaired model is written."""

from __future__ import annotations

from dataclasses import replace

from edgeflare.repair.judging.judged_inputs import FRESH, SAMPLED, SEEDS, TIGHT, WIDE
from edgeflare.repair.judging.judgement import Change, Figures, Judgement
from edgeflare.repair.repair_outcome import OnDevice
from edgeflare.repair.repair_run import surely_gains, verdict


def figures(deviating: int) -> Figures:
    return Figures(1000, deviating, deviating // 2, 0, 0, None, 0)


def judgement(mended: int, broken: int, before: int = 100) -> Judgement:
    names = (SEEDS, TIGHT, WIDE, SAMPLED)
    after = before - mended + broken
    return Judgement(
        before={name: figures(before) for name in names},
        after={name: figures(after) for name in names},
        changes={name: Change(mended, broken, 1.0) for name in names},
        accuracy={},
    )


def on_device(before: int, after: int) -> OnDevice:
    sides = {TIGHT: figures(before)}, {TIGHT: figures(after)}
    return OnDevice("board", *sides, same_labels=1000, asked=1000)


def test_a_gain_is_sure_where_chance_does_not_explain_it() -> None:
    assert surely_gains(judgement(20, 5))
    assert not surely_gains(judgement(4, 3))
    assert not surely_gains(judgement(5, 20))
    assert not surely_gains(judgement(0, 0))


def test_a_sure_gain_on_host_and_devices_is_written() -> None:
    written, why = verdict(judgement(20, 5), [on_device(100, 80)])
    assert written
    assert why == "300 held-out inputs near the boundary deviate before and 255 after"


def test_what_is_not_sure_or_worse_anywhere_is_not() -> None:
    written, why = verdict(judgement(4, 3), [on_device(100, 80)])
    assert not written
    assert "12 are mended and 9 broken" in why
    written, why = verdict(judgement(20, 5), [on_device(100, 80), on_device(100, 100)])
    assert not written
    assert why == "on board 100 held-out inputs would deviate instead of 100"
    good = judgement(20, 5)
    fresh = replace(
        good,
        before={**good.before, FRESH: figures(10)},
        after={**good.after, FRESH: figures(11)},
    )
    written, why = verdict(fresh, [on_device(100, 80)])
    assert not written
    assert why == "on fresh data 11 inputs would deviate instead of 10"
