"""`edgeflare bench --fleet` and `rank --fleet`, with real commands as units.

The cluster alone is stood in for, so that the tests need no Ray: each attempt is made in its turn.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from attempts_in_memory import BegunAttempt
from attempts_of_this_process import AttemptsHere, attempts_here, made_attempt
from called_commands import call_here
from edgeflare.fleet.work.unit_attempt import AttemptResult
from run_content import content_differences
from summed_up_runs import summed_up_content

SHORT = ("--first", "3", "--max-queries", "40")
FLEET = ("--fleet", "local", "--fleet-devices", "2")


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AttemptsHere:
    return attempts_here(monkeypatch, tmp_path / "cache")


@pytest.mark.slow
def test_a_stopped_bench_goes_on_with_what_is_left_and_is_as_if_made_alone(
    example: Path,
    tmp_path: Path,
    attempts: AttemptsHere,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    question = ("bench", example, "--strategy", "random", "--rng-seeds", "0,1", *SHORT)
    out, alone = tmp_path / "bench", tmp_path / "alone"
    of_alone = call_here(*question, "--out", alone)
    assert of_alone.code == 0, of_alone.err

    def stopping(attempt: BegunAttempt) -> AttemptResult:
        made = made_attempt(attempt)
        os.kill(os.getpid(), signal.SIGINT)
        return made

    attempts.outcome = stopping
    # One device: what waits when Ctrl-C comes is not begun.
    stopped = call_here(*question, "--out", out, "--fleet", "local", "--fleet-devices", "1")
    attempts.outcome = made_attempt
    assert stopped.code == 130
    assert "1 of 2 runs are done" in stopped.err
    assert attempts.units() == ["fashion_lenet4+random-0"]
    assert not out.exists()
    refused = call_here(*question, "--out", out, *FLEET)
    assert refused.code == 2
    assert "go on with --resume, or name another" in refused.complaint()

    again = (*question, "--out", out, "--fleet", "local", "--resume")
    done = call_here(*again)
    assert done.code == 0, done.err
    assert attempts.units()[1:] == ["fashion_lenet4+random-1", "rest"]
    assert content_differences(summed_up_content(out), summed_up_content(alone)) == []
    assert without_times(done.out) == without_times(of_alone.out)
    assert "3 of 3 units done" in call_here("fleet", "status", out).out

    before = (out / "bench.json").read_bytes()
    nothing_left = call_here(*again, "--quiet")
    assert (nothing_left.code, nothing_left.out) == (0, f"{out}\n")
    assert len(attempts.begun) == 3
    assert (out / "bench.json").read_bytes() == before


def without_times(table: str) -> list[str]:
    """The words of a table, but for its two rows of seconds and its lines, as wide as it likes."""
    lines = [line for line in table.splitlines() if not line.startswith("  s ")]
    return [word for word in " ".join(lines).split() if set(word) != {"─"}]


@pytest.mark.slow
def test_runs_that_two_devices_of_a_class_have_made_are_summed_up(
    example: Path, tmp_path: Path, attempts: AttemptsHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run names its own device, which the one that sums up is not."""
    profiles = tmp_path / "device_profiles"
    profiles.mkdir()
    for name in ("one", "other"):
        (profiles / f"{name}.toml").write_text('transport = "emulated"\nkernels = "builtin"\n')
    fleet = tmp_path / "fleet.toml"
    fleet.write_text('[hosts.h]\naddress = "192.0.2.1"\ndevices = { board = ["one", "other"] }\n')
    monkeypatch.chdir(tmp_path)
    options = ("--strategy", "random", "--rng-seeds", "0,1", *SHORT, "--device", "board")
    said = call_here(
        "bench",
        example,
        *options,
        "--fleet",
        "192.0.2.1:6379",
        "--fleet-file",
        fleet,
        "--out",
        "bench",
    )
    assert said.code == 0, said.err
    found = summed_up_content(tmp_path / "bench")["bench.json"]
    assert {run["devices"][0]["name"] for run in found["runs"]} == {"one", "other"}
    assert len(attempts.begun) == 3


@pytest.mark.parametrize(
    ("command", "words", "expected"),
    [
        ("bench", ["--only", "fashion_lenet4/random-0"], "leave one out"),
        ("bench", ["--device", "emulated-all"], "name one class"),
        ("bench", ["--fleet", "192.0.2.1:1"], "--fleet-file"),
        ("bench", ["--total-queries", "9"], "No such option: --total-queries"),
        ("bench", ["--resume"], "leave out --resume"),
        ("rank", ["--labelled", "nowhere.npz"], "nowhere.npz cannot be read"),
    ],
)
def test_what_no_fleet_can_make_is_refused_in_one_line(
    command: str, words: list[str], expected: str, example: Path, tmp_path: Path
) -> None:
    of_all: dict[str, list[str | Path]] = {
        "bench": ["--strategy", "random"],
        "rank": ["--compressed", example / "original.tflite"],
    }
    said = call_here(command, example, *of_all[command], *FLEET, "--out", tmp_path / "out", *words)
    assert said.code == 2
    assert expected in said.complaint()
    assert not list(tmp_path.iterdir())


def test_a_folder_that_one_device_has_begun_is_left_as_it_is(example: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "pair").mkdir(parents=True)
    (tmp_path / "out.fleet").mkdir()
    said = call_here("bench", example, *FLEET, "--out", tmp_path / "out", "--resume")
    assert said.code == 2
    assert "go on with it without --fleet" in said.complaint()


@pytest.mark.parametrize(
    ("command", "more", "runs"),
    [
        ("bench", ("--strategy", "random", "--rng-seeds", "0,1"), 2),
        ("rank", ("--compressed", "original.tflite"), 2),
    ],
)
def test_a_dry_run_names_devices_and_units(
    command: str,
    more: tuple[str, ...],
    runs: int,
    example: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(example)
    out = tmp_path / "out"
    said = call_here(command, example, *more, *SHORT, *FLEET, "--out", out, "--dry-run")
    assert said.code == 0, said.err
    assert "2 devices of the class emulated-builtin, on local" in said.out
    assert f"{runs} units make a run each" in said.out
    assert f"edgeflare {command} --device DEVICE --out RUN --only fashion_lenet4/" in said.out
    assert not list(tmp_path.iterdir())
