"""What C libraries write to stderr by themselves, kept off the terminal while they work.

They do not write through `sys.stderr`, so the descriptor itself leads elsewhere meanwhile: for the
whole process, all its threads and the processes that it starts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

STDERR: Final = 2
"""The descriptor of stderr, whatever `sys.stderr` is."""


@contextmanager
def diverted_stderr(to: int | None = None) -> Iterator[None]:
    """Let what is written to stderr go into a file, for as long as the context lasts.

    Args:
        to: the descriptor of the file; None for what nobody is to read.

    """
    sys.stderr.flush()
    before = os.dup(STDERR)
    try:
        if to is None:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), STDERR)
        else:
            os.dup2(to, STDERR)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, STDERR)
        os.close(before)
