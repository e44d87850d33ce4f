from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from edgeflare.errors import UserError
from edgeflare.record.folder_lock import is_locked, lock_folder, locked

ANOTHER = """
import sys, time
from pathlib import Path
from edgeflare.record.folder_lock import lock_folder
lock_folder(Path(sys.argv[1]))
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
            lock_folder(tmp_path)
        assert is_locked(tmp_path)
        other.kill()
        other.wait()
        assert not is_locked(tmp_path)
        os.close(lock_folder(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_no_process_takes_its_own_lock_for_that_of_another(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with locked(tmp_path / "link"):
        assert not is_locked(tmp_path)
    lock = lock_folder(tmp_path)
    assert is_locked(tmp_path)
    os.close(lock)


def test_somebody_who_only_asks_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(asks, fcntl.LOCK_SH)
    monkeypatch.setattr("edgeflare.record.folder_lock.time.sleep", lambda _: os.close(asks))
    os.close(lock_folder(tmp_path))
