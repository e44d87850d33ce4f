"""What C libraries write to stderr by themselves, kept off the terminal while they work.

They do not write through `sys.stderr`, so the descriptor itself leads elsewhere meanwhile: for the
whole process, all its threads and the processes that it starts.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

STDERR: Final = 2
"""The descriptor of stderr, whatever `sys.stderr` is."""

_lock = threading.Lock()

_destinations: list[int] = []
"""Where stderr led and leads: at first what it was before all diversions, then that of each that
lasts. Threads end theirs in any order, so none may put back what it found."""


@contextmanager
def diverted_stderr(to: int | None = None) -> Iterator[None]:
    """Let what is written to stderr go into a file, for as long as the context lasts.

    Args:
        to: the descriptor of the file; None for what nobody is to read.

    """
    sys.stderr.flush()
    own = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC) if to is None else os.dup(to)
    with _lock:
        if not _destinations:
            _destinations.append(os.dup(STDERR))
        _destinations.append(own)
        os.dup2(own, STDERR)
    try:
        yield
    finally:
        sys.stderr.flush()
        with _lock:
            _destinations.remove(own)
            os.dup2(_destinations[-1], STDERR)
            if len(_destinations) == 1:
                os.close(_destinations.pop())
        os.close(own)
