"""A conformance run that is killed again and again, and comes to what it would have come to."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgeflare.conform.record.conform_file import read_conformance
from edgeflare.conform.record.finding_files import load_finding
from edgeflare.run.run_directory import RunDirectory
from interrupted_commands import started

RUN = ("conform", "--ops", "TANH", "--dtype", "int16x8", "--models", "264")
"""Two rounds, of an operator that all kernels get wrong. What they make of a sum of no values would
be another one in each process."""

KILLS = 2
LONGEST_SECONDS = 300.0


def _command(out: Path) -> list[str]:
    if _has_begun(out):
        return [*RUN, "--out", str(out), "--resume"]
    return [*RUN, "--out", str(out), "--overwrite"]


def _has_begun(out: Path) -> bool:
    """Whether there is a journal to go on with."""
    if not (out / "conform.db").exists():
        return False
    with closing(sqlite3.connect(out / "conform.db")) as db:
        return bool(db.execute("PRAGMA user_version").fetchone()[0])


def _run(out: Path) -> dict[str, Any]:
    with started(*_command(out)) as process:
        _, err = process.communicate(timeout=LONGEST_SECONDS)
    assert process.returncode == 0, err
    document = read_conformance(RunDirectory(out))
    return {key: value for key, value in document.items() if key != "seconds"}


def _kill(out: Path, after: float) -> None:
    """Kill the host, not what it has started, as the system does where memory is short."""
    with started(*_command(out)) as process:
        time.sleep(after)
        os.kill(process.pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_run_that_is_killed_comes_to_the_same(tmp_path: Path) -> None:
    began = time.monotonic()
    whole = _run(tmp_path / "whole")
    seconds = time.monotonic() - began
    assert {one["operator"] for one in whole["findings"]} == {"TANH"}
    moments = np.random.default_rng(15).uniform(0, seconds, KILLS)
    for after in moments:
        _kill(tmp_path / "killed", float(after))
    assert _run(tmp_path / "killed") == whole, moments
    for one in whole["findings"]:
        files = [
            load_finding(RunDirectory(tmp_path / run), one["smallest"]["file"])
            for run in ("whole", "killed")
        ]
        assert files[0].model == files[1].model
        assert files[0].arrays.keys() == files[1].arrays.keys()
        for name, values in files[0].arrays.items():
            np.testing.assert_array_equal(values, files[1].arrays[name])
