from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edgeflare.errors import UserError
from edgeflare.run.journal import Journal
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_lock import is_locked, lock_run
from laboratory import Laboratory

ANOTHER = """
import sys, time
from pathlib import Path
from edgeflare.run.run_lock import lock_run
lock_run(Path(sys.argv[1]))
print("locked", flush=True)
time.sleep(60)
"""


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ANOTHER, str(tmp_path)], stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(UserError, match="is being worked on by another process: wait until"):
            lock_run(tmp_path)
        assert is_locked(tmp_path)
        other.kill()
        other.wait()
        assert not is_locked(tmp_path)
        os.close(lock_run(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_run_that_is_under_way_is_neither_gone_on_with_nor_replaced(
    laboratory: Laboratory,
) -> None:
    run = laboratory.folder / "run"
    laboratory.run("run", stop_after=300)
    before = sorted(run.rglob("*"))
    journal = Journal.open(run / "run.db")
    journal.lock()
    with pytest.raises(UserError, match="is being worked on by another process"):
        laboratory.run("run", resume=True)
    with pytest.raises(UserError, match="is being worked on by another process"):
        RunDirectory.claim(run, overwrite=True)
    assert (run / "run.json").is_file()
    assert sorted(path for path in run.rglob("*") if "-" not in path.name) == [
        path for path in before if "-" not in path.name
    ]
    journal.close()
    laboratory.run("run", resume=True)
    assert laboratory.stopped is None
