from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from edgeflare.devices.transports import scratch
from edgeflare.devices.transports.scratch import ScratchFolder
from edgeflare.record.folder_contents import BEGUN_LIST


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def age(path: Path) -> None:
    an_hour_ago = time.time() - 3600
    os.utime(path, (an_hour_ago, an_hour_ago))


def killed_processs_folder(temporary: Path) -> Path:
    code = (
        "import os; from edgeflare.devices.transports.scratch import ScratchFolder\n"
        "print(ScratchFolder().path, flush=True); os.kill(os.getpid(), 9)"
    )
    environment = {**os.environ, "TMPDIR": str(temporary)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    path = Path(done.stdout.strip())
    assert path.is_dir()
    return path


def test_it_is_removed_with_all_that_is_in_it(temporary: Path) -> None:
    folder = ScratchFolder()
    (folder.path / "deep").mkdir()
    (folder.path / "deep" / "file").touch()
    folder.remove()

    assert list(temporary.iterdir()) == []


def test_what_a_killed_process_left_is_swept_up_and_nothing_else(temporary: Path) -> None:
    abandoned, fresh = killed_processs_folder(temporary), killed_processs_folder(temporary)
    in_use = ScratchFolder()
    somebody_elses = temporary / "other-emulated"
    somebody_elses.mkdir()
    alike = temporary / "edgeflare-scratch-of-mine"
    alike.mkdir()
    (alike / "mine").touch()
    empty, begun = (temporary / f"edgeflare-scratch-{name}" for name in ("empty", "begun"))
    empty.mkdir()
    begun.mkdir()
    (begun / BEGUN_LIST).write_text('{"schema":')
    for path in (abandoned, in_use.path, somebody_elses, alike, empty, begun):
        age(path)

    another = ScratchFolder()

    assert set(temporary.iterdir()) == {fresh, in_use.path, another.path, somebody_elses, alike}
    for folder in (in_use, another):
        folder.remove()


def test_one_that_cannot_be_begun_is_removed_and_unlocked(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(scratch, "begin_list", full)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="No space left"):
        ScratchFolder()
    assert list(temporary.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == before
