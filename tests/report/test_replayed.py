"""What a replay adds to its document, and how a terminal shows it."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from edgeflare.report.replayed import regressed, replay_part
from edgeflare.report.terminal_replay import replay_totals


def entry(seed_id: int, sha256: str, linf: float = 9.0, kind: str = "deviation") -> dict[str, Any]:
    return {
        "seed_id": seed_id,
        "sha256": sha256,
        "kind": kind,
        "distortion": {"linf": linf},
    }


def noted(baseline: list[str] | None) -> dict[str, Any]:
    return {
        "of": {"run": "runs/before", "devices": ["phone"], "compressed": "a.tflite"},
        "baseline": None if baseline is None else {"run": "runs/known", "sha256": baseline},
        "seed_sha256": {"1": "seed-1", "2": "seed-2"},
    }


KINDS = {1: "deviation", 2: "deviation"}


@pytest.mark.parametrize(
    ("known", "new"), [(["a"], [2]), (["a", "seed-2"], []), (["seed-2"], [1]), ([], [1, 2])]
)
def test_new_is_what_did_not_deviate_in_the_baseline_by_what_it_is(
    known: list[str], new: list[int]
) -> None:
    part = replay_part(noted(known), KINDS, [entry(1, "a")], [entry(2, "b")], [2])
    assert part["new"] == new


def test_a_kind_that_changed_is_told() -> None:
    part = replay_part(noted(None), KINDS, [entry(1, "a", kind="crash"), entry(2, "b")], [], [])
    assert part["changed_kind"] == [{"seed_id": 1, "before": "deviation", "now": "crash"}]


def test_a_terminal_shows_a_mended_input_whose_seed_deviates() -> None:
    document = {
        "findings": [], "deviating_seeds": [], "flaky": [], "totals": {"seeds": 2},
        "pair": {"compressed": "a.tflite"},
    }  # fmt: skip
    mended = [entry(1, "a"), entry(2, "b")]
    document["replay"] = replay_part(noted(["x"]), KINDS, [], mended, [2])
    console = Console(file=io.StringIO(), width=120)
    console.print(replay_totals(document))
    text = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert "mended 1 (seed 1)" in text
    assert "mended, but its seed deviates 1 (seed 2)" in text
    assert "seeds that deviate only now 1 (seed 2)" in text
    assert "new since runs/known 1 (seed 2)" in text
    assert regressed(document)
