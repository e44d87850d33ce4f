"""Tests of edgeflare.repair.repair_summary."""

from __future__ import annotations

from typing import Any

from edgeflare.repair.repair_summary import repair_summary
from repaired_example import repair_by_shifts


def document(**changes: Any) -> dict[str, Any]:
    figures = {"asked": 1600, "deviating": 725, "big": 300, "strict": 100}
    better = {**figures, "deviating": 248}
    tight = {"before": figures, "after": better, "mended": 500, "broken": 23, "p": 2e-9}
    return {
        "schema": "edgeflare.repair/v2",
        "pair": {"name": "a|b"},
        "written": True,
        "why": "725 deviate before and 248 after",
        "repaired": {
            "device": "board", "bytes_before": 100, "bytes_after": 90,
            "seconds_before": 2e-6, "seconds_after": 1e-6, "ratio": 0.5,
        },
        "chosen": "ranges",
        "judged": dict.fromkeys(("tight", "wide", "sampled"), tight),
        "offered": None,
        "candidates": [],
        **changes,
    }  # fmt: skip


def test_a_repair_has_a_row_for_each_set() -> None:
    said = repair_summary(document())
    assert "## EdgeFlare repair: a\\|b" in said
    assert "✅ A repaired model is written: 725 deviate before and 248 after." in said
    assert "It has -10 bytes, and takes -1.0 µs (-50.0%) on board." in said
    assert "| tight | 1,600 | 725 → 248 | 300 → 300 | 100 → 100 | 500 | 23 | 2e-09 |" in said


def test_what_more_cost_would_give_stands_beside_what_is_chosen() -> None:
    sides = {"before": {"deviating": 725}, "after": {"deviating": 3}}
    offered = {
        "candidate": "weights-only",
        "options": ["--max-latency none"],
        "judged": dict.fromkeys(("tight", "wide", "sampled"), sides),
    }
    needs = {"--max-latency": "+187%"}
    tried = {"name": "weights-only", "latency_ratio": 2.87, "bytes": 43600, "needs": needs}
    for changes, instead in (({}, "744"), ({"written": False, "repaired": None}, "2,175")):
        said = repair_summary(document(offered=offered, candidates=[tried], **changes))
        assert (
            f"weights-only: 9 instead of {instead} of these inputs near the boundary deviate, at ×"
            " 2.87 of the time and 43,600 bytes, which needs --max-latency +187%: --max-latency"
            " none."
        ) in said.replace("\\", "")


def test_one_without_a_model_says_why_alone() -> None:
    nothing = {"written": False, "repaired": None, "judged": None, "why": "nothing <gains>"}
    said = repair_summary(document(**nothing))
    assert said.endswith("⚪ No model is written: nothing \\<gains\\>.\n")
    assert "|" not in said.removeprefix("## EdgeFlare repair: a\\|b")


def test_a_repair_by_shifts_has_its_repairers() -> None:
    shown = repair_by_shifts()
    said = repair_summary(shown)
    assert "| shifts (the default) |" in said
    assert f"{100 * shown['repairers']['shifts']['net']['value']:+.1f}" in said
