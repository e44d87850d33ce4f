"""A file without a name, in memory where the system can: it needs no folder to write to."""

from __future__ import annotations

import os
import tempfile


def nameless_file(purpose: str) -> int:
    """Return the descriptor of a new, empty file, which ends with its last descriptor.

    Args:
        purpose: what the system's list of open files calls it.

    Raises:
        OSError: the system has no files in memory, and no temporary folder can be written to.

    """
    if hasattr(os, "memfd_create"):
        return os.memfd_create(purpose)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
