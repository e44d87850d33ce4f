"""What a program that was just started says first, waited for in bounded time."""

from __future__ import annotations

import os
import select
import time

_MOST_BYTES = 4096
"""Bytes that are kept while the sign is waited for; what is said before may be of any length."""


def read_until(sign: bytes, descriptor: int, seconds: float) -> bytes:
    """Return the end of what a program has written once a sign is in it.

    Args:
        sign: what is waited for.
        descriptor: where the program writes.
        seconds: how long to wait.

    Raises:
        TimeoutError: the sign did not come in time.
        EOFError: the program has ended, or closed its output.

    """
    deadline = time.monotonic() + seconds
    # Unlike select, poll takes descriptors of any number.
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    heard = b""
    while sign not in heard:
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise TimeoutError
        part = os.read(descriptor, _MOST_BYTES)
        if not part:
            raise EOFError
        heard = (heard + part)[-_MOST_BYTES:]
    return heard
