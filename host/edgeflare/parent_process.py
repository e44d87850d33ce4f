"""A process that ends with its parent."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
"""Of Linux: the signal that a process gets when the thread that began it ends."""

_KILLED = 137
"""The exit code that shells give a process that SIGKILL ended."""


def end_with_parent(parent: int) -> None:
    """Have the kernel kill this process once its parent is gone, and end it if that is so already.

    Args:
        parent: process id of the parent, as it was when that began this process.

    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before it could be asked for
        os._exit(_KILLED)
