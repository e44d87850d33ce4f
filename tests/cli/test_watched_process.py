"""A process that is watched: its exit code, a silent end, signals, and the end of its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from processes import alive

BEGIN = "import os, sys, time, signal; from edgeflare.cli.watched_process import *;"
WATCHED = f"{BEGIN} says = watch_this_process();"
DEADLINE_SECONDS = 60.0


def started(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WATCHED + code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("code", [0, 1, 2, 130])
def test_an_end_that_was_said_keeps_its_exit_code(code: int) -> None:
    process = started(f"print('done'); says(); sys.exit({code})")
    out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert (process.returncode, out, err) == (code, "done\n", "")


@pytest.mark.parametrize("code", [0, 1])
def test_an_end_without_a_word_is_exit_code_3(code: int) -> None:
    process = started(f"os._exit({code})")
    _, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 3
    (line,) = err.splitlines()
    assert "--resume goes on" in line


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_the_child(number: int) -> None:
    heard = f"signal.signal({int(number)}, lambda *_: (says(), sys.exit(7)));"
    process = started(f"{heard} print('up', flush=True); time.sleep(600)")
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(number)
    assert process.wait(DEADLINE_SECONDS) == 7


def test_a_killed_child_is_told_as_it_was() -> None:
    process = started("os.kill(os.getpid(), signal.SIGKILL)")
    process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == -signal.SIGKILL


def test_the_child_ends_with_its_parent() -> None:
    process = started("print(os.getpid(), flush=True); time.sleep(600)")
    assert process.stdout is not None
    child = int(process.stdout.readline())
    os.kill(process.pid, signal.SIGKILL)
    process.wait(DEADLINE_SECONDS)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(child)
