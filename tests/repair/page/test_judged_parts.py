"""Tests of edgeflare.repair.page.judged_parts."""

from __future__ import annotations

from typing import Any

from edgeflare.repair.page.judged_parts import candidate_part, judged_part, search_parts


def one_set(before: int, after: int, **more: Any) -> dict[str, Any]:
    sides = {"before": before, "after": after}
    counts = {
        when: {"asked": 1600, "deviating": n, "big": n // 2, "strict": 0, "right": 90 + n,
               "labelled": 100}
        for when, n in sides.items()
    }  # fmt: skip
    change = {"mended": before, "broken": after, "p": 0.25}
    return {**counts, **change, "accuracy": None, **more}


def candidate(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name, "seconds": 1.25, "bytes": 43296, "latency_ratio": 0.5, "score": 0.6,
        "latency": [{"ratio_low": 0.48, "ratio_high": 0.53}], "needs": {},
        "sets": {key: one_set(700, 500) for key in ("seeds", "tight", "wide", "sampled")},
        "set_aside": None, **changes,
    }  # fmt: skip


DOCUMENT: dict[str, Any] = {
    "candidates": [
        candidate("ranges"),
        candidate("float", latency=[], needs={"--max-size": "+9%"}, set_aside="it needs +9%"),
        candidate("broken", score=None, sets=None, set_aside="it does not load"),
    ],
    "front": ["ranges"],
    "chosen": "ranges",
    "judged": {
        "seeds": one_set(3, 1, accuracy={"mended": 2, "broken": 0, "p": 0.5}),
        "tight": one_set(1700, 900),
    },
    "on_devices": [
        {"device": "board", "sets": {"seeds": one_set(3, 1), "tight": one_set(9, 5)},
         "asked": 3200, "same_labels": 3199},
    ],
}  # fmt: skip


def test_candidates_are_marked_and_those_set_aside_have_their_reason() -> None:
    judged, aside = candidate_part(DOCUMENT).tables
    changes = ["700 → 500"] * 3
    assert judged.rows == [
        ("ranges", "chosen, front", "0.60", *changes, "× 0.50", "0.48 to 0.53", "43,296", "1.2"),
        ("float", "beyond the limits", "0.60", *changes, "× 0.50", "–", "43,296", "1.2"),
    ]
    assert aside.rows == [("float", "it needs +9%"), ("broken", "it does not load")]


def test_the_judgement_has_sets_true_labels_and_devices() -> None:
    sets, labels, devices = judged_part(DOCUMENT).tables
    assert sets.rows[1] == (
        *("tight", "1,600", "1,700 → 900", "850 → 450", "0 → 0"),
        *("1,700", "900", "0.2"),
    )
    assert labels.rows == [("seeds", "100", "93 → 91", "2", "0", "0.5")]
    assert devices.rows == [("board", "12 → 6", "3,199 of 3,200")]


def test_a_search_of_the_repaired_model_stands_beside_the_run() -> None:
    assert list(search_parts({"again": None})) == []
    one = {"deviating_seeds": 2, "findings": 1000, "success_rate": 0.5, "mean_queries": 12.25}
    other = {**one, "success_rate": None, "mean_queries": None}
    again = {"strategy": "boundary", "stopped_by": "sigterm", "before": one, "after": other}
    (part,) = search_parts({"again": again})
    assert "stopped before its end: SIGTERM" in part.words
    assert part.tables[0].rows == [
        ("before", "2", "1,000", "50.0%", "12.2"),
        ("after", "2", "1,000", "–", "–"),
    ]
