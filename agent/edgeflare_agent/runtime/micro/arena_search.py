"""The least arena that a model opens in."""

from __future__ import annotations

import os
from collections.abc import Callable

from edgeflare_agent.runtime.answers import ModelRejected

_STEP_BYTES = 64
"""What sizes are tried at: a power of two of these, then in between."""


def least_arena_bytes(opens: Callable[[int], object], counted: int, most: int) -> int:
    """Return the least size of an arena, in steps of 64 bytes from the one that is counted.

    Each size is tried in a forked process, for kernels that get no memory may read from nowhere.

    Args:
        opens: opens the model in an arena of so many bytes, or raises ModelRejected.
        counted: what the runtime counts once the model is open, in bytes; this leaves out what
            operators take for a moment while they get ready.
        most: bytes in which it opens.

    """
    too_few, enough = -1, 0
    while not _opens_elsewhere(opens, min(counted + enough * _STEP_BYTES, most)):
        if counted + enough * _STEP_BYTES >= most:
            return most
        too_few, enough = enough, max(1, 2 * enough)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if _opens_elsewhere(opens, counted + middle * _STEP_BYTES):
            enough = middle
        else:
            too_few = middle
    return min(counted + enough * _STEP_BYTES, most)


def _opens_elsewhere(opens: Callable[[int], object], size: int) -> bool:
    """Return whether a model opens in a process that ends with it, however that ends."""
    child = os.fork()
    if not child:
        code = 1
        try:
            opens(size)
            code = 0
        except ModelRejected:
            pass
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0
