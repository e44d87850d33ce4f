"""A temporary folder that does not outlive its process for long, however that process ends."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

from edgeflare.errors import UserError
from edgeflare.record.folder import is_free
from edgeflare.record.folder_contents import begin_list, read_contents

_PREFIX = "edgeflare-scratch-"
_HOLDS = "scratch folder"

_YOUNG_SECONDS = 60.0
"""A folder this young may be one that its process has not locked yet."""


class ScratchFolder:
    """A folder that only this user can read, locked for as long as its process lives.

    A process that is killed cannot remove its folder; the next one sees that nobody holds the
    lock, and does. It is known by the list in it, or by that there is nothing in it.
    """

    def __init__(self) -> None:
        _sweep()
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            begin_list(self.path, _HOLDS)
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        """Remove the folder and all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _sweep() -> None:
    """Remove this user's folders that killed processes left behind."""
    for path in Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        try:
            status = path.lstat()
            if status.st_uid != os.getuid() or time.time() - status.st_mtime < _YOUNG_SECONDS:
                continue
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue  # not a folder, or another process was faster
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            contents = read_contents(path)
            if is_free(path) or (contents is not None and contents.holds == _HOLDS):
                shutil.rmtree(path, ignore_errors=True)
        except (BlockingIOError, UserError):
            pass  # its process lives, or it cannot be read
        finally:
            os.close(lock)
