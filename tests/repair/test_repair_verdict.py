"""Tests of edgeflare.repair.repair_verdict: when a repaired model is written."""

from __future__ import annotations

from dataclasses import replace

from edgeflare.repair.judging.judged_inputs import FRESH, TIGHT
from edgeflare.repair.repair_outcome import OnDevice
from edgeflare.repair.repair_verdict import verdict
from judgements import figures, judgement


def on_device(before: int, after: int) -> OnDevice:
    sides = {TIGHT: figures(before)}, {TIGHT: figures(after)}
    return OnDevice("board", *sides, same_labels=1000, asked=1000)


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
    silent = on_device(100, 0)
    silent = replace(silent, after={TIGHT: replace(figures(0), failed=1000)})
    written, why = verdict(judgement(20, 5), [silent])
    assert not written
    assert why == "on board it gives no answer on 1,000 held-out inputs"
    good = judgement(20, 5)
    fresh = replace(
        good,
        before={**good.before, FRESH: figures(10)},
        after={**good.after, FRESH: figures(11)},
    )
    written, why = verdict(fresh, [on_device(100, 80)])
    assert not written
    assert why == "on fresh data 11 inputs would deviate instead of 10"
