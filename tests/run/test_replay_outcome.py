"""What a replay adds to its document, and how a terminal shows it."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from documents import finding, run_document
from edgeflare.report.run_page import print_run
from edgeflare.run.replay_outcome import regressed, replay_outcome
from edgeflare.run.run_document import ChangedKind, Finding


def entry(seed_id: int, digit: str, linf: float = 9.0, kind: str = "deviation") -> Finding:
    return finding(seed_id=seed_id, sha256=64 * digit, kind=kind, distortion={"linf": linf})


def noted(baseline: list[str] | None) -> dict[str, Any]:
    if baseline is not None:
        baseline = [64 * one if len(one) == 1 else one for one in baseline]
    return {
        "run": {"run": "runs/before", "devices": ["phone"], "compressed": "a.tflite"},
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
    part = replay_outcome(noted(known), KINDS, [entry(1, "a")], [entry(2, "b")], [2])
    assert part.new == tuple(new)


def test_a_seed_that_deviated_in_the_survey_does_not_deviate_only_now() -> None:
    told = {**noted(["seed-1"]), "deviated": [1]}
    part = replay_outcome(told, KINDS, [], [entry(1, "a"), entry(2, "b")], [1, 2])
    assert (part.deviating_seeds, part.new) == ((2,), (2,))
    # Without a baseline each seed that deviates counts.
    part = replay_outcome({**noted(None), "deviated": [1]}, KINDS, [], [entry(1, "a")], [1])
    assert (part.deviating_seeds, part.new) == ((), (1,))
    assert regressed(run_document(replay=part))


def test_a_kind_that_changed_is_told() -> None:
    part = replay_outcome(noted(None), KINDS, [entry(1, "a", kind="crash"), entry(2, "b")], [], [])
    assert part.changed_kind == (ChangedKind(seed_id=1, before="deviation", now="crash"),)


def test_a_terminal_shows_a_mended_input_whose_seed_deviates() -> None:
    mended = [entry(1, "a"), entry(2, "b")]
    replay = replay_outcome(noted(["x"]), KINDS, [], mended, [2])
    document = run_document(pair={"compressed": "a.tflite"}, replay=replay)
    console = Console(file=io.StringIO(), width=120)
    print_run(console, document, "runs/now")
    text = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert "mended 1 (seed 1)" in text
    assert "mended, but its seed deviates 1 (seed 2)" in text
    assert "seeds that deviate only now 1 (seed 2)" in text
    assert "new since runs/known 1 (seed 2)" in text
    assert regressed(document)


def test_paths_are_cut_from_the_left_where_a_terminal_is_narrow() -> None:
    replay = replay_outcome(noted(None), KINDS, [entry(1, "a")], [], [])
    document = run_document(
        findings=[entry(1, "a")],
        unverified=[entry(2, "b")],
        pair={"compressed": f"/{'long/' * 20}pair/compressed_with_a_long_name.tflite"},
        replay=replay,
    )
    console = Console(file=io.StringIO(), width=80)
    print_run(console, document, "runs/now")
    lines = console.file.getvalue()  # type: ignore[attr-defined]
    assert "compressed_with_a_long_name.tflite" in lines
    assert "then a.tflite" in " ".join(lines.split())
    assert "deviating now 1 of 1 tried again" in " ".join(lines.split())
    assert "still" not in lines
