"""Ctrl-C, as a wish to stop that a campaign heeds."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from edgeflare.campaign.campaign import Interrupt

INTERRUPTED: Final = 130
"""The exit code that shells give a process that Ctrl-C ended."""


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Turn Ctrl-C and SIGTERM into a wish to stop, for as long as the context lasts."""
    interrupt = Interrupt()

    def ask(_signal: int, _frame: FrameType | None) -> None:
        interrupt.ask()
        if not interrupt.urgent():
            sys.stderr.write("\nstopping: verifying what was found; Ctrl-C again stops at once\n")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def as_ctrl_c() -> Iterator[None]:
    """Let SIGTERM end what runs as Ctrl-C does, for as long as the context lasts."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
