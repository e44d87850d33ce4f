"""Ctrl-C, as a wish to stop that a campaign heeds."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from edgeflare.campaign.campaign import Interrupt

INTERRUPTED: Final = 130
"""The exit code that shells give a process that Ctrl-C ended."""


@contextmanager
def interruptible(stopping: str = "verifying what was found") -> Iterator[Interrupt]:
    """Turn Ctrl-C and SIGTERM into a wish to stop, for as long as the context lasts.

    Args:
        stopping: what is still done then, in words.

    """
    interrupt = Interrupt()

    def ask(_signal: int, _frame: FrameType | None) -> None:
        interrupt.ask()
        if not interrupt.urgent():
            sys.stderr.write(f"\nstopping: {stopping}; Ctrl-C again stops at once\n")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_AGAIN_SECONDS: Final = 0.05


@contextmanager
def as_ctrl_c() -> Iterator[None]:
    """Let SIGTERM end what runs as Ctrl-C does, for as long as the context lasts.

    A Ctrl-C that comes while a weakref callback or a `__del__` runs is lost: Python cannot raise
    out of those. It is sent again a moment later.
    """
    before, told = signal.signal(signal.SIGTERM, signal.default_int_handler), sys.unraisablehook
    main = threading.get_ident()
    pending: list[threading.Timer] = []

    def again(lost: sys.UnraisableHookArgs) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            told(lost)
            return
        timer = threading.Timer(_AGAIN_SECONDS, signal.pthread_kill, (main, signal.SIGINT))
        timer.daemon = True
        pending.append(timer)
        timer.start()

    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = told
        for timer in pending:
            timer.cancel()
        signal.signal(signal.SIGTERM, before)
