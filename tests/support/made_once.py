"""Folders that are slow to make, made once in a run of the tests by whichever worker is first."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(
    tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]
) -> Path:
    """Return a folder that all workers read and none changes.

    Args:
        tmp_path_factory: of this worker.
        name: of the folder, which no other one has.
        make: fills it, given its path; the folder is there, and empty.

    """
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # that of all workers
    folder, complete = base / "made_once" / name, base / "made_once" / f"{name}.complete"
    folder.parent.mkdir(exist_ok=True)
    with complete.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            complete.touch()
    return folder
