"""`edgeflare search --fleet`, with real commands as units: stopped, gone on with, and moved.

The cluster alone is stood in for, so that the tests need no Ray: each attempt is made in its turn.
"""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from attempts_in_memory import BegunAttempt
from attempts_of_this_process import AttemptsHere, attempts_here, made_attempt
from called_commands import call_here
from documents import Document
from edgeflare.cli import search_fleet
from edgeflare.errors import InfrastructureError
from edgeflare.fleet.unit_runs import FAILURES
from edgeflare.fleet.work import unit_attempt
from edgeflare.fleet.work.unit_attempt import AttemptReport, AttemptResult, run_attempt
from laboratory import untimed

SHORT = ("--first", "6", "--max-queries", "60", "--shrink", "5", "--fail-on", "none")
FLEET = ("--fleet", "local", "--unit-seeds", "2")


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AttemptsHere:
    return attempts_here(monkeypatch, tmp_path / "cache")


def comparable(out: Path) -> Document:
    document = untimed(json.loads((out / "run.json").read_bytes()))
    del document["warnings"]
    return document


def stopping_at(unit: str) -> Callable[[BegunAttempt], AttemptResult]:
    """An outcome that asks to stop once a unit is done, as Ctrl-C does."""

    def outcome(attempt: BegunAttempt) -> AttemptResult:
        made = made_attempt(attempt)
        if attempt.order.unit == unit:
            os.kill(os.getpid(), signal.SIGINT)
        return made

    return outcome


def stopping_before_anything(attempt: BegunAttempt) -> AttemptResult:
    """An outcome without a run, which asks to stop, as Ctrl-C at once does."""
    del attempt
    os.kill(os.getpid(), signal.SIGINT)
    return AttemptResult(130, "", None, 0.0)


@pytest.mark.slow
def test_a_stopped_search_goes_on_and_is_as_if_made_alone(
    example: Path, tmp_path: Path, attempts: AttemptsHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = ("search", example, *SHORT, "--coverage", "0.5")
    out, alone = tmp_path / "run", tmp_path / "alone"
    assert call_here(*question, "--out", alone).code == 0

    attempts.outcome = stopping_at("screening-0000")
    assert call_here(*question, *FLEET, "--out", out).code == 130
    assert comparable(out)["stopped_by"] == "screening"

    attempts.outcome = stopping_at("unit-0000")
    assert call_here(*question, *FLEET, "--out", out, "--resume").code == 130
    assert comparable(out)["stopped_by"] == "merge"
    assert 0 < len(comparable(out)["findings"]) <= 2

    # All units are done, and what was merged before is not taken for the whole.
    attempts.outcome = made_attempt
    with monkeypatch.context() as patch:

        def full(*_: object, **__: object) -> None:
            raise InfrastructureError("the disk is full")

        patch.setattr(search_fleet, "merge_in_groups", full)
        said = call_here(*question, *FLEET, "--out", out, "--resume")
        assert (said.code, "the disk is full" in said.complaint()) == (3, True)
    names = ["screening-0000", "unit-0000", "unit-0001", "unit-0002"]
    assert attempts.units() == names

    # Options that decide nothing may change.
    more = ("--resume", "--allow-other-host", "--chains", "3")
    assert call_here(*question, *FLEET, "--out", out, *more).code == 0
    assert attempts.units() == [*names, "rest"]
    assert comparable(out) == comparable(alone)

    before = (out / "run.json").read_bytes()
    assert call_here(*question, *FLEET, "--out", out, "--resume").code == 0
    assert (out / "run.json").read_bytes() == before
    assert call_here(*question, *FLEET, "--max-queries", "9", "--out", out, "--resume").code == 2


@pytest.mark.slow
def test_a_lost_attempt_is_gone_on_with_on_a_device_of_another_name(
    example: Path, tmp_path: Path, attempts: AttemptsHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_attempt, "LOOK_SECONDS", 0.05)
    monkeypatch.chdir(tmp_path)
    profiles = tmp_path / "device_profiles"
    profiles.mkdir()
    for name in ("one", "other"):
        (profiles / f"{name}.toml").write_text('transport = "emulated"\nkernels = "builtin"\n')
    fleet = tmp_path / "fleet.toml"
    fleet.write_text('[hosts.h]\naddress = "192.0.2.1"\ndevices = { board = ["one", "other"] }\n')
    lost: Counter[str] = Counter()
    backups: list[AttemptReport] = []

    def outcome(attempt: BegunAttempt) -> AttemptResult | str:
        searched = attempt.order.unit.startswith("unit-")
        if attempt.order.device != "one" or not searched or lost.total() == FAILURES:
            return made_attempt(attempt)
        lost[attempt.order.unit] += 1
        order = attempt.order
        stopped = run_attempt(order, attempt.given, attempt.backup, lambda one: one.ended < 1)
        backups.append(AttemptReport(order.unit, order.number, 0, 0, 0.0, stopped.run))
        return "its host is gone"

    def told() -> list[AttemptReport]:
        taken, backups[:] = list(backups), []
        return taken

    attempts.outcome, attempts.told = outcome, told
    question = ("search", example, *SHORT)
    words = ("--device", "board", "--fleet", "192.0.2.1:6379", "--fleet-file", fleet)
    said = call_here(*question, *words, "--unit-seeds", "2", "--out", "run")
    assert said.code == 0, said.err
    assert lost.total() == FAILURES
    gone_on = {one.order.unit for one in attempts.begun if one.backup is not None}
    assert gone_on == set(lost)

    assert call_here(*question, "--device", "one", "--out", "alone").code == 0
    merged, alone = comparable(tmp_path / "run"), comparable(tmp_path / "alone")
    assert merged["findings"] == alone["findings"]
    assert "are alike" in " ".join(json.loads(Path("run/run.json").read_bytes())["warnings"])


@pytest.mark.slow
def test_a_run_that_somebody_went_on_with_is_not_written_over(
    example: Path, tmp_path: Path, attempts: AttemptsHere
) -> None:
    question = ("search", example, *SHORT)
    out = tmp_path / "run"
    attempts.outcome = stopping_at("unit-0000")
    assert call_here(*question, *FLEET, "--out", out).code == 130
    stopped = (out / "run.json").read_bytes()
    assert call_here("report", out, "--html").code == 0  # which changes nothing of it
    assert call_here(*question, "--out", out, "--resume").code == 0
    made, begun = (out / "run.json").read_bytes(), attempts.units()
    assert made != stopped

    attempts.outcome = made_attempt
    said = call_here(*question, *FLEET, "--out", out, "--resume")
    assert (said.code, "not as the fleet left it" in said.complaint()) == (2, True)
    assert (out / "run.json").read_bytes() == made
    assert attempts.units() == begun

    out.rename(tmp_path / "aside")
    assert call_here(*question, *FLEET, "--out", out, "--resume").code == 0
    assert comparable(out)["findings"] == comparable(tmp_path / "aside")["findings"]


@pytest.mark.slow
def test_a_run_that_was_to_be_replaced_is_never_taken_for_the_result(
    example: Path, tmp_path: Path, attempts: AttemptsHere
) -> None:
    question = ("search", example, *SHORT)
    out = tmp_path / "run"
    assert call_here(*question, "--out", out, "--rng-seed", "1").code == 0

    attempts.outcome = stopping_before_anything
    assert call_here(*question, *FLEET, "--out", out, "--overwrite").code == 130
    attempts.outcome = made_attempt
    assert call_here(*question, *FLEET, "--out", out, "--resume").code == 0
    assert comparable(out)["rng_seed"] == 0
    assert "unit-0000" in attempts.units()

    # What the fleet has made is known again, and no cluster is joined for it.
    begun = attempts.units()
    assert call_here(*question, *FLEET, "--out", out, "--resume").code == 0
    assert attempts.units() == begun


@pytest.mark.slow
def test_some_seeds_are_searched_to_the_last(
    example: Path, tmp_path: Path, attempts: AttemptsHere
) -> None:
    """What is merged of some units names no other seeds, and is no whole for that."""
    question = ("search", example, *SHORT, *FLEET, "--seed-ids", "0:5", "--out", tmp_path / "run")
    attempts.outcome = stopping_at("unit-0000")
    assert call_here(*question).code == 130
    attempts.outcome = made_attempt
    assert call_here(*question, "--resume").code == 0
    assert comparable(tmp_path / "run")["totals"]["seeds"] == 5
    assert attempts.units().count("unit-0002") == 1


@pytest.mark.slow
def test_a_run_that_somebody_makes_meanwhile_is_not_written_over(
    example: Path, tmp_path: Path, attempts: AttemptsHere
) -> None:
    question = ("search", example, *SHORT, *FLEET, "--out", tmp_path / "run")

    def outcome(attempt: BegunAttempt) -> AttemptResult:
        made = made_attempt(attempt)
        if attempt.order.unit == "unit-0002":
            (tmp_path / "run" / "run.json").write_text("precious")
        return made

    attempts.outcome = outcome
    said = call_here(*question)
    assert (said.code, "move it away" in said.err) == (2, True), said.err
    assert (tmp_path / "run" / "run.json").read_text() == "precious"
    (tmp_path / "run").rename(tmp_path / "aside")
    begun = attempts.units()
    assert call_here(*question, "--resume").code == 0
    assert attempts.units() == begun


@pytest.mark.slow
def test_the_gate_counts_the_findings_of_the_merged_run(
    example: Path, tmp_path: Path, attempts: AttemptsHere
) -> None:
    """With --fail-on any, which is the default: screenings that find nothing fail nothing."""
    counted = (*SHORT[:-2], "--within", "none")
    said = call_here("search", example, *counted, *FLEET, "--out", tmp_path / "run")
    assert (said.code, "exit code 1" in said.out) == (1, True)
    assert attempts.units() == ["screening-0000", "unit-0000", "unit-0001", "unit-0002"]


@pytest.mark.slow
def test_harm_without_labels_is_refused_before_anything_is_searched(
    example: Path, tmp_path: Path, attempts: AttemptsHere
) -> None:
    with np.load(example / "seeds.npz") as arrays:
        np.savez(tmp_path / "unlabelled.npz", images=arrays["images"][:6])
    seeds = ("--seeds", tmp_path / "unlabelled.npz")
    words = ("--max-queries", "60", "--fail-on", "harmful", "--out", tmp_path / "run")
    said = call_here("search", example, *seeds, *words, *FLEET)
    assert (said.code, "no seed has a label" in said.complaint()) == (2, True)
    assert attempts.units() == ["screening-0000"]
