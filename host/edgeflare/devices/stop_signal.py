"""A signal by which the user stops the program, heeded also while it waits for a device."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class StopSignal(KeyboardInterrupt):
    """A signal after which the user does not want to wait any longer."""


@contextmanager
def raise_on_stop(stopped: Callable[[], bool]) -> Iterator[None]:
    """Raise `StopSignal` out of what runs in the context once a signal has made `stopped` true.

    It is raised once, so that what then cleans up is not cut short. Other threads than the main one
    receive no signals; there nothing is raised.

    Args:
        stopped: whether the user wants to stop; asked after the handlers of SIGINT and SIGTERM that
            are there already.

    """
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    raised = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal raised
        handler = handlers[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)
        if stopped() and not raised:
            raised = True
            raise StopSignal

    try:
        for number, handler in handlers.items():
            if callable(handler):  # else the signal ends the process, or is ignored
                signal.signal(number, handle)
        yield
    finally:
        for number, handler in handlers.items():
            if callable(handler):
                signal.signal(number, handler)
