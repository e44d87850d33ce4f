from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edgeflare.errors import UserError
from edgeflare.record.folder_lock import is_locked, lock_folder

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
