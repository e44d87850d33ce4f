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

import pytest

from documents import as_json
from edgeflare.errors import UserError
from edgeflare.fleet.plan.unit_command import RESUME
from edgeflare.fleet.work import unit_attempt
from edgeflare.fleet.work.folder_archive import unpack_folder
from edgeflare.fleet.work.unit_attempt import AttemptResult
from edgeflare.record.folder_lock import is_locked
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from fleet_attempts import COMMAND, attempt_order, attempted
from laboratory import untimed
from processes import alive

pytestmark = pytest.mark.slow

LONG = tuple("800" if word == "60" else "40" if word == "6" else word for word in COMMAND)
GONE_SECONDS = 120.0


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(unit_attempt, "LOOK_SECONDS", 0.1)
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
    assert reports[-1].ended < 40
    assert stopped.run is not None
    part = document(stopped, tmp_path / "part")
    assert part["stopped_by"] == "interrupt"

    backups = [one.backup for one in reports if one.backup is not None]
    for at, backup in enumerate((stopped.run, backups[-1])):
        gone_on, _ = attempted(attempt_order(2, LONG), backup)
        assert gone_on.exit_code == 0, gone_on.said
        assert document(gone_on, tmp_path / f"gone-on-{at}") == expected
    assert not list(cache.rglob("unit-*"))


def test_a_host_without_the_pair_is_refused(refusal: Callable[..., str]) -> None:
    message = refusal(attempted, replace(attempt_order(), folder="/nowhere/at/all"))
    assert "/nowhere/at/all" in message


def test_a_backup_that_is_no_run_is_not_gone_on_with() -> None:
    """The host is not refused for it: another one has sent it. The command is told of no run."""
    result, _ = attempted(attempt_order(command=("strategies", RESUME)), b"no archive")
    assert result.exit_code == 0, result.said


def test_what_is_wrong_with_a_command_is_sent_along() -> None:
    result, _ = attempted(attempt_order(command=(*COMMAND, "--strategy", "nosuch")))
    assert result.exit_code == 2
    assert "nosuch" in result.said.splitlines()[-1]
    assert result.run is None


def test_the_command_ends_with_its_parent(tmp_path: Path, cache: Path) -> None:
    """And what the parent left is removed by the next attempt, once nobody works there."""
    support = Path(__file__).parents[2] / "support"
    code = "import fleet_attempts as f; f.attempted(f.attempt_order(command=tuple(f.COMMAND)))"
    code = code.replace("tuple(f.COMMAND)", repr(LONG))
    parent = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(support)}
    )
    deadline = time.monotonic() + GONE_SECONDS
    while not (journals := list(cache.rglob("run.db"))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert journals
    (child,) = [int(pid) for pid in _children(parent.pid)]
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(child)

    (left,) = cache.rglob("unit-*")
    # What the command has started notices its end a moment later.
    while (is_locked(left) or is_locked(left / "run")) and time.monotonic() < deadline:
        time.sleep(0.05)
    with pytest.raises(UserError):
        attempted(replace(attempt_order(), folder="/nowhere"))
    result, _ = attempted(attempt_order())
    assert result.exit_code == 0, result.said
    assert not list(cache.rglob("unit-*"))


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
