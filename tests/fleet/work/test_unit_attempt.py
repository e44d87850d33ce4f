"""Attempts that are real processes: to their end, stopped, gone on with, and orphaned."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from documents import as_json
from edgeflare.fleet.work import unit_attempt
from edgeflare.fleet.work.folder_archive import unpack_folder
from edgeflare.fleet.work.unit_attempt import (
    AttemptOrder,
    AttemptReport,
    AttemptResult,
    run_attempt,
)
from edgeflare.fleet.work_units import DEVICE, RESUME, RUN
from edgeflare.record.folder_lock import is_locked
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from forked_commands import forked_bound_command
from laboratory import untimed
from processes import alive, children

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


def search(seeds: int, queries: int) -> tuple[str, ...]:
    """Return the command of a unit of the example."""
    return (
        *("search", "--device", DEVICE, "--out", RUN, RESUME, "examples/fashion_lenet4"),
        *("--first", str(seeds), "--max-queries", str(queries)),
        *("--shrink", "10", "--fail-on", "none", "--quiet"),
    )


SHORT, LONG = search(4, 40), search(20, 400)


def attempt_order(number: int = 1, command: tuple[str, ...] = SHORT) -> AttemptOrder:
    """Return the order of an attempt that reports at each look, and backs up at each as well."""
    return AttemptOrder(
        campaign="tested",
        unit="unit-0000",
        number=number,
        command=command,
        folder=str(ROOT),
        device="emulated-builtin",
        backup_seconds=0.0,
    )


def attempted(
    order: AttemptOrder, backup: bytes | None = None, stop_at: int | None = None
) -> tuple[AttemptResult, list[AttemptReport]]:
    """Make an attempt, stopped once so many searches have ended; return what it reported, too."""
    heard: list[AttemptReport] = []

    def hear(report: AttemptReport) -> bool:
        heard.append(report)
        return stop_at is None or report.ended < stop_at

    return run_attempt(order, {}, backup, hear), heard


GONE_SECONDS = 120.0


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(unit_attempt, "LOOK_SECONDS", 0.1)
    python = SimpleNamespace(executable=str(forked_bound_command()))
    monkeypatch.setattr(unit_attempt, "sys", python)  # commands that need no imports
    return tmp_path / "cache"


def document(result: AttemptResult, folder: Path) -> dict[str, object]:
    assert result.run is not None, result.said
    unpack_folder(result.run, folder)
    return untimed(as_json(load_document(RunDirectory(folder))))


def test_a_stopped_attempt_is_gone_on_with_as_if_nothing_had_been(
    tmp_path: Path, cache: Path
) -> None:
    whole, reports = attempted(attempt_order(command=LONG))
    assert whole.exit_code == 0, whole.said
    assert [one.ended for one in reports] == sorted(one.ended for one in reports)
    expected = document(whole, tmp_path / "whole")

    stopped, reports = attempted(attempt_order(command=LONG), stop_at=3)
    assert stopped.exit_code == 130, stopped.said
    assert reports[-1].ended < 20
    assert stopped.run is not None
    part = document(stopped, tmp_path / "part")
    assert part["stopped_by"] == "interrupt"

    backups = [one.backup for one in reports if one.backup is not None]
    for at, backup in enumerate((stopped.run, backups[-1])):
        gone_on, reports = attempted(attempt_order(2, LONG), backup)
        assert gone_on.exit_code == 0, gone_on.said
        assert at or reports[0].ended >= 3  # what had ended before is told first
        assert document(gone_on, tmp_path / f"gone-on-{at}") == expected
    assert not list(cache.rglob("unit-*"))


def test_a_backup_that_is_no_run_is_not_gone_on_with() -> None:
    """The host is not refused for it: another one has sent it. The command is told of no run."""
    result, _ = attempted(attempt_order(command=("strategies", RESUME)), b"no archive")
    assert result.exit_code == 0, result.said


def test_what_is_wrong_with_a_command_is_sent_along() -> None:
    opened = os.listdir("/proc/self/fd")
    result, _ = attempted(attempt_order(command=(*SHORT, "--strategy", "nosuch")))
    assert os.listdir("/proc/self/fd") == opened
    assert result.exit_code == 2
    assert "nosuch" in result.said.splitlines()[-1]
    assert result.run is None


def test_the_command_ends_with_its_parent(cache: Path, refusal: Callable[..., str]) -> None:
    """And what the parent left is removed by the next attempt, once nobody works there."""
    code = "import test_unit_attempt as f; f.attempted(f.attempt_order(command=f.LONG))"
    folders = [str(Path(__file__).parent), str(ROOT / "tests" / "support")]
    parent = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    )
    deadline = time.monotonic() + GONE_SECONDS
    while not (journals := list(cache.rglob("run.db"))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert journals
    (child,) = children(parent.pid)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(child)

    (left,) = cache.rglob("unit-*")
    # What the command has started notices its end a moment later.
    while (is_locked(left) or is_locked(left / "run")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "/nowhere" in refusal(attempted, replace(attempt_order(), folder="/nowhere"))
    result, _ = attempted(attempt_order())
    assert result.exit_code == 0, result.said
    assert not list(cache.rglob("unit-*"))
