"""One process at a time writes a folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edgeflare.errors import UserError


def is_locked(folder: Path) -> bool:
    """Whether another process works on a folder; False where that cannot be known."""
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError:
        return False
    try:
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

    Raises:
        UserError: another process holds it.

    """
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise UserError(
            f"{folder} is being worked on by another process: wait until that has ended, or name"
            " another folder"
        ) from None
    except OSError:
        pass  # a file system without locks, as some networks have
    return lock


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep every other process from writing a folder while the context lasts.

    Raises:
        UserError: another process works on it.

    """
    lock = lock_folder(folder)
    try:
        yield
    finally:
        os.close(lock)
