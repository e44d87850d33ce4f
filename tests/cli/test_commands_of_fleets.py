"""Commands on a fleet, with real commands as units: stopped, gone on with, and moved.

The cluster alone is stood in for, so that the tests need no Ray: each attempt is made in its turn.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from attempts_in_memory import BegunAttempt
from attempts_of_this_process import AttemptsHere, attempts_here, call_commands_here, made_attempt
from called_commands import EXAMPLE, call_here, completed, document_of, refused
from documents import Document
from edgeflare.errors import InfrastructureError
from edgeflare.fleet import search_job
from edgeflare.fleet.unit_runs import FAILURES
from edgeflare.fleet.work import unit_attempt
from edgeflare.fleet.work.unit_attempt import AttemptReport, AttemptResult, run_attempt
from laboratory import comparable, untimed
from run_content import content_differences
from summed_up_runs import summed_up_content

SHORT = ("--first", "5", "--max-queries", "30", "--shrink", "1", "--fail-on", "none")

FLEET = ("--fleet", "local", "--unit-seeds", "2")
FEW = ("--first", "2", "--max-queries", "20")
TWO_DEVICES = ("--fleet", "local", "--fleet-devices", "2")


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AttemptsHere:
    """Attempts that call their commands within this process, whose lines are wide enough."""
    call_commands_here(monkeypatch)
    monkeypatch.setenv("COLUMNS", "300")
    return attempts_here(monkeypatch, tmp_path / "cache")


def write_fleet_of_two(folder: Path) -> Path:
    """Write a fleet of one host with two devices of the class board."""
    profiles = folder / "device_profiles"
    profiles.mkdir()
    for name in ("one", "other"):
        (profiles / f"{name}.toml").write_text('transport = "emulated"\nkernels = "builtin"\n')
    fleet = folder / "fleet.toml"
    fleet.write_text('[hosts.h]\naddress = "192.0.2.1"\ndevices = { board = ["one", "other"] }\n')
    return fleet


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
    tmp_path: Path, attempts: AttemptsHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = ("search", EXAMPLE, *SHORT, "--coverage", "0.5")
    out, alone = tmp_path / "run", tmp_path / "alone"
    completed(*question, "--out", alone)

    attempts.outcome = stopping_at("screening-0000")
    completed(*question, *FLEET, "--out", out, code=130)
    assert comparable(out)["stopped_by"] == "screening"

    attempts.outcome = stopping_at("unit-0000")
    completed(*question, *FLEET, "--out", out, "--resume", code=130)
    assert comparable(out)["stopped_by"] == "merge"
    assert 0 < len(comparable(out)["findings"]) <= 2

    # All units are done, and what was merged before is not taken for the whole.
    attempts.outcome = made_attempt
    with monkeypatch.context() as patch:

        def full(*_: object, **__: object) -> None:
            raise InfrastructureError("the disk is full")

        patch.setattr(search_job, "merge_in_groups", full)
        said = call_here(*question, *FLEET, "--out", out, "--resume")
        assert (said.code, "the disk is full" in said.complaint()) == (3, True)
    names = ["screening-0000", "unit-0000", "unit-0001", "unit-0002"]
    assert attempts.units() == names

    # Options that decide nothing may change.
    more = ("--resume", "--allow-other-host", "--chains", "3")
    completed(*question, *FLEET, "--out", out, *more)
    assert attempts.units() == [*names, "rest"]
    assert comparable(out) == comparable(alone)

    before = (out / "run.json").read_bytes()
    completed(*question, *FLEET, "--out", out, "--resume")
    assert (out / "run.json").read_bytes() == before
    completed(*question, *FLEET, "--max-queries", "9", "--out", out, "--resume", code=2)


@pytest.mark.slow
def test_a_lost_attempt_is_gone_on_with_on_a_device_of_another_name(
    tmp_path: Path, attempts: AttemptsHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(unit_attempt, "LOOK_SECONDS", 0.05)
    fleet = write_fleet_of_two(tmp_path)
    lost: Counter[str] = Counter()
    backups: list[AttemptReport] = []

    def outcome(attempt: BegunAttempt) -> AttemptResult | str:
        searched = attempt.order.unit.startswith("unit-")
        if attempt.order.device != "one" or not searched or lost.total() == FAILURES:
            return made_attempt(attempt)
        lost[attempt.order.unit] += 1
        order = attempt.order
        with monkeypatch.context() as patch:
            patch.setattr(unit_attempt, "subprocess", subprocess)  # what can be stopped
            stopped = run_attempt(order, attempt.given, attempt.backup, lambda one: one.ended < 1)
        backups.append(AttemptReport(order.unit, order.number, 0, 0, 0.0, stopped.run))
        return "its host is gone"

    def told() -> list[AttemptReport]:
        taken, backups[:] = list(backups), []
        return taken

    attempts.outcome, attempts.told = outcome, told
    question = ("search", EXAMPLE, *SHORT)
    words = ("--device", "board", "--fleet", "192.0.2.1:6379", "--fleet-file", fleet)
    completed(*question, *words, "--unit-seeds", "2", "--out", "run")
    assert lost.total() == FAILURES
    gone_on = {one.order.unit for one in attempts.begun if one.backup is not None}
    assert gone_on == set(lost)

    completed(*question, "--device", "one", "--out", "alone")
    merged, alone = comparable(tmp_path / "run"), comparable(tmp_path / "alone")
    assert merged["findings"] == alone["findings"]
    assert "are alike" in " ".join(json.loads(Path("run/run.json").read_bytes())["warnings"])


@pytest.mark.slow
def test_a_run_that_somebody_went_on_with_is_not_written_over(
    tmp_path: Path, attempts: AttemptsHere
) -> None:
    question = ("search", EXAMPLE, *SHORT)
    out = tmp_path / "run"
    attempts.outcome = stopping_at("unit-0000")
    completed(*question, *FLEET, "--out", out, code=130)
    stopped = (out / "run.json").read_bytes()
    completed("report", out, "--csv")  # which changes nothing of it
    completed(*question, "--out", out, "--resume")
    made, begun = (out / "run.json").read_bytes(), attempts.units()
    assert made != stopped

    attempts.outcome = made_attempt
    assert "not as the fleet left it" in refused(*question, *FLEET, "--out", out, "--resume")
    assert (out / "run.json").read_bytes() == made
    assert attempts.units() == begun

    out.rename(tmp_path / "aside")
    completed(*question, *FLEET, "--out", out, "--resume")
    assert comparable(out)["findings"] == comparable(tmp_path / "aside")["findings"]


@pytest.mark.slow
def test_a_run_that_was_to_be_replaced_is_never_taken_for_the_result(
    tmp_path: Path, attempts: AttemptsHere
) -> None:
    question = ("search", EXAMPLE, *SHORT)
    out = tmp_path / "run"
    completed(*question, "--out", out, "--rng-seed", "1")

    attempts.outcome = stopping_before_anything
    completed(*question, *FLEET, "--out", out, "--overwrite", code=130)
    attempts.outcome = made_attempt
    completed(*question, *FLEET, "--out", out, "--resume")
    assert comparable(out)["rng_seed"] == 0
    assert "unit-0000" in attempts.units()

    # What the fleet has made is known again, and no cluster is joined for it.
    begun = attempts.units()
    completed(*question, *FLEET, "--out", out, "--resume")
    assert attempts.units() == begun


@pytest.mark.slow
def test_some_seeds_are_searched_to_the_last(tmp_path: Path, attempts: AttemptsHere) -> None:
    """What is merged of some units names no other seeds, and is no whole for that."""
    question = ("search", EXAMPLE, *SHORT, *FLEET, "--seed-ids", "0:5", "--out", tmp_path / "run")
    attempts.outcome = stopping_at("unit-0000")
    completed(*question, code=130)
    attempts.outcome = made_attempt
    completed(*question, "--resume")
    assert comparable(tmp_path / "run")["totals"]["seeds"] == 5
    assert attempts.units().count("unit-0002") == 1


@pytest.mark.slow
def test_a_run_that_somebody_makes_meanwhile_is_not_written_over(
    tmp_path: Path, attempts: AttemptsHere
) -> None:
    question = ("search", EXAMPLE, *SHORT, *FLEET, "--out", tmp_path / "run")

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
    completed(*question, "--resume")
    assert attempts.units() == begun


@pytest.mark.slow
def test_the_gate_counts_the_findings_of_the_merged_run(
    tmp_path: Path, attempts: AttemptsHere
) -> None:
    """With --fail-on any, which is the default: screenings that find nothing fail nothing."""
    counted = (*SHORT[:-2], "--within", "none")
    said = call_here("search", EXAMPLE, *counted, *FLEET, "--out", tmp_path / "run")
    assert (said.code, "exit code 1" in said.out) == (1, True)
    assert attempts.units() == ["screening-0000", "unit-0000", "unit-0001", "unit-0002"]


@pytest.mark.slow
def test_harm_without_labels_is_refused_before_anything_is_searched(
    tmp_path: Path, attempts: AttemptsHere
) -> None:
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        np.savez(tmp_path / "unlabelled.npz", images=arrays["images"][:6])
    seeds = ("--seeds", tmp_path / "unlabelled.npz")
    words = ("--max-queries", "60", "--fail-on", "harmful", "--out", tmp_path / "run")
    assert "no seed has a label" in refused("search", EXAMPLE, *seeds, *words, *FLEET)
    assert attempts.units() == ["screening-0000"]


QUESTION = (
    *("survey", EXAMPLE, "--conditions", "contrast"),
    *("--severities", "1", "--device-queries", "20", "--findings", "1"),
    *("--device", "emulated-builtin"),
)


def documents(folder: Path) -> tuple[Document, Document]:
    """The documents of a run and of its survey, without times."""
    survey = document_of(folder, "survey.json")
    return untimed(document_of(folder)), {**survey, "seconds": 0}


@pytest.mark.slow
def test_a_survey_on_a_fleet_is_that_of_one_device(tmp_path: Path, attempts: AttemptsHere) -> None:
    alone, out = tmp_path / "alone", tmp_path / "run"
    here = call_here(*QUESTION, "--out", alone)
    there = call_here(*QUESTION, "--fleet", "local", "--out", out)
    assert (there.code, here.code) == (0, 0)
    assert documents(out) == documents(alone)
    assert str(out) in there.out
    assert attempts.units() == ["emulated-builtin"]

    # A survey that was to be replaced is not taken for the result.
    attempts.outcome = stopping_before_anything
    again = (*QUESTION, "--rng-seed", "5", "--fleet", "local", "--out", out)
    completed(*again, "--overwrite", code=130)
    attempts.outcome = made_attempt
    completed(*again, "--resume")
    assert attempts.begun[-1].backup is None
    assert documents(out)[0]["rng_seed"] == 5
    made = (out / "survey.json").read_bytes()

    # Nor is one written over that somebody has made there meanwhile.
    completed(*QUESTION, "--out", out, "--overwrite")
    assert "not as the fleet left it" in refused(*again, "--resume")
    assert (out / "survey.json").read_bytes() != made


BRIEF = ("--behaviour", "error", "--max-inputs", "100", "--precision", ".9")


@pytest.mark.whitebox
@pytest.mark.slow
def test_an_inspection_is_put_into_the_run(tmp_path: Path, attempts: AttemptsHere) -> None:
    pytest.importorskip("jax", reason="needs the extra whitebox")
    run, alone = tmp_path / "run", tmp_path / "alone"
    options = ("--first", "4", "--max-queries", "20", "--shrink", "0", "--fail-on", "none")
    completed("search", EXAMPLE, *options, "--out", run)
    shutil.copytree(run, alone)
    before = (run / "run.json").read_bytes()

    device = ("--device", "emulated-xnnpack")
    here = call_here("inspect", alone, *BRIEF, *device)
    there = call_here("inspect", run, *BRIEF, *device, "--fleet", "local")
    assert (there.code, here.code) == (0, 0)
    written = document_of(run, "inspect.json")
    assert written == document_of(alone, "inspect.json")
    assert written["verdict"]["sentence"] in there.out
    assert (run / "run.json").read_bytes() == before
    assert attempts.units() == ["emulated-xnnpack"]
    assert (tmp_path / "run.inspect.fleet" / "fleet.json").is_file()


@pytest.mark.slow
def test_a_stopped_bench_goes_on_with_what_is_left_and_is_as_if_made_alone(
    tmp_path: Path, attempts: AttemptsHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")  # too few for times
    question = ("bench", EXAMPLE, "--strategy", "random", "--rng-seeds", "0,1", *FEW)
    out, alone = tmp_path / "bench", tmp_path / "alone"
    of_alone = completed(*question, "--out", alone)

    attempts.outcome = stopping_at("fashion_lenet4+random-0")
    # One device: what waits when Ctrl-C comes is not begun.
    stopped = call_here(*question, "--out", out, "--fleet", "local", "--fleet-devices", "1")
    attempts.outcome = made_attempt
    assert stopped.code == 130
    assert "1 of 2 runs are done" in stopped.err
    assert attempts.units() == ["fashion_lenet4+random-0"]
    assert not out.exists()
    assert "go on with --resume, or name another" in refused(*question, "--out", out, *TWO_DEVICES)

    again = (*question, "--out", out, "--fleet", "local", "--resume")
    done = completed(*again)
    assert attempts.units()[1:] == ["fashion_lenet4+random-1", "rest"]
    assert content_differences(summed_up_content(out), summed_up_content(alone)) == []
    assert done.out == of_alone.out
    assert "3 of 3 units done" in call_here("fleet", "status", out).out

    before = (out / "bench.json").read_bytes()
    nothing_left = call_here(*again, "--quiet")
    assert (nothing_left.code, nothing_left.out) == (0, f"{out}\n")
    assert len(attempts.begun) == 3
    assert (out / "bench.json").read_bytes() == before


@pytest.mark.slow
def test_runs_that_two_devices_of_a_class_have_made_are_summed_up(
    tmp_path: Path, attempts: AttemptsHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run names its own device, which the one that sums up is not."""
    monkeypatch.chdir(tmp_path)
    options = ("--strategy", "random", "--rng-seeds", "0,1", *FEW, "--device", "board")
    cluster = ("--fleet", "192.0.2.1:6379", "--fleet-file", write_fleet_of_two(tmp_path))
    completed("bench", EXAMPLE, *options, *cluster, "--out", "bench")
    found = summed_up_content(tmp_path / "bench")["bench.json"]
    assert {run["devices"][0]["name"] for run in found["runs"]} == {"one", "other"}
    assert len(attempts.begun) == 3


def test_a_folder_that_one_device_has_begun_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "out" / "pair").mkdir(parents=True)
    (tmp_path / "out.fleet").mkdir()
    assert "go on with it without --fleet" in refused(
        "bench", EXAMPLE, *TWO_DEVICES, "--out", tmp_path / "out", "--resume"
    )


@pytest.mark.parametrize(
    ("command", "more", "runs"),
    [
        ("bench", ("--strategy", "random", "--rng-seeds", "0,1"), 2),
        ("rank", ("--compressed", "original.tflite"), 2),
    ],
)
def test_a_dry_run_names_devices_and_units(
    command: str, more: tuple[str, ...], runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLE)
    out = tmp_path / "out"
    said = completed(command, EXAMPLE, *more, *FEW, *TWO_DEVICES, "--out", out, "--dry-run")
    assert "2 devices of the class emulated-builtin, on local" in said.out
    assert f"units that make a run each: {runs}" in said.out
    assert f"edgeflare {command} --device DEVICE --out RUN --only fashion_lenet4/" in said.out
    assert not list(tmp_path.iterdir())
