"""Files that may be a stranger's, read without waiting for a pipe and without end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from edgeflare.errors import UserError


def read_regular(path: Path, most_bytes: int) -> bytes:
    """Return the content of a regular file of at most so many bytes.

    Raises:
        UserError: it is no regular file, or larger.
        OSError: it cannot be read.

    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most_bytes:
            raise UserError(f"{path} is larger than {most_bytes >> 20} MiB: give a smaller one")
        return file.read(size)


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for a reader that bounds what it reads of it.

    Raises:
        UserError: it is no regular file, or its name is none.
        OSError: it cannot be opened.

    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:  # a NUL, or half a character
        raise UserError(f"{str(path)!r} is the name of no file: {error}") from None
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise UserError(f"{path} is not a regular file: give one") from None
        raise
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise UserError(f"{path} is not a regular file: give one")
    return os.fdopen(descriptor, "rb")
