"""One process at a time writes a folder.

A command that adds files to a folder holds its lock too. Two kinds of files are written without it,
since the command that works there holds it for hours: the page of `report --html`, and what `fleet
drain` says, a file for each host.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from edgeflare.errors import UserError

_HELD: Final[set[tuple[int, int]]] = set()
"""Folders that this process itself has `locked`, by device and inode."""

_TRIES: Final = 5
_PAUSE: Final = 0.02
"""Seconds between two tries to lock: far more than a command needs to ask `is_locked`."""


def is_locked(folder: Path) -> bool:
    """Whether another process works on a folder; False where that cannot be known."""
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError:
        return False
    try:
        if _which(lock) in _HELD:  # the kernel tells two descriptors of one process apart
            return False
        # Shared, and only for a moment: two who ask do not see each other.
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(lock)
    return False


def lock_folder(folder: Path) -> int:
    """Lock a folder, and return what `os.close` unlocks it by.

    The lock is the kernel's, on the folder itself: it leaves no file behind, and is gone when its
    process ends, however it ends.
    """
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for tries_left in reversed(range(_TRIES)):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if tries_left:  # somebody may only be asking whether it is locked
                time.sleep(_PAUSE)
                continue
            os.close(lock)
            raise UserError(
                f"{folder} is being worked on by another process: wait until that has ended, or"
                " name another folder"
            ) from None
        except OSError:
            pass  # a file system without locks, as some networks have
        break
    return lock


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep every other process from writing a folder while the context lasts."""
    lock = lock_folder(folder)
    which = _which(lock)
    _HELD.add(which)
    try:
        yield
    finally:
        _HELD.discard(which)
        os.close(lock)


def _which(lock: int) -> tuple[int, int]:
    status = os.fstat(lock)
    return status.st_dev, status.st_ino
