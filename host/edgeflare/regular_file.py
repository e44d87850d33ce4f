"""Files that may be a stranger's, read without waiting for a pipe and without end."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from edgeflare.errors import UserError


def read_regular(path: Path, most_bytes: int) -> bytes:
    """Return the content of a regular file of at most so many bytes.

    Raises:
        UserError: it is no regular file, or larger.
        OSError: it cannot be read.

    """
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise UserError(f"{path} is not a regular file: give one")
        if status.st_size > most_bytes:
            raise UserError(f"{path} is larger than {most_bytes >> 20} MiB: give a smaller one")
        return file.read(status.st_size)
