"""Errors that signals raise in the main thread, where that leaves none of a library's locks taken.

Python runs a signal's handler between any two steps of the main thread. Where `threading.Condition`
has just taken its lock, an error leaves that taken, and whoever wants it next waits for ever: of
2,432 signals to a loop of `submit(…).result()` ten ended so, and a command that is stopped there
would never end.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Final

_AGAIN_SECONDS: Final = 0.02
"""Seconds after which a signal that came where nothing may be raised is sent again."""

_MOST_SECONDS: Final = 10.0
"""Seconds after which its error is raised wherever the main thread is."""

_LOCKING: Final = frozenset(
    {
        *("threading", "queue", "logging", "tempfile", "_weakrefset", "importlib._bootstrap"),
        *("concurrent.futures._base", "concurrent.futures.thread"),
    }
)
"""Modules of Python that take locks by functions written in Python."""

_WAITING: Final = frozenset(
    {"wait", "wait_for", "join", "result", "exception", "shutdown", "get", "put"}
)
"""Their functions that wait for another thread, and keep no lock where an error ends that."""

_JOINING: Final = frozenset({"join", "_wait_for_tstate_lock"})
"""Functions in which a thread waits for the end of another; the second up to Python 3.12."""

ErrorOf = Callable[[FrameType | None], BaseException | None]
"""Is called with the frame that a signal came in, and returns what to raise; None for nothing."""


@contextmanager
def signal_errors(errors: Mapping[int, ErrorOf]) -> Iterator[None]:
    """Have signals raise errors in this thread, the main one, for as long as the context lasts.

    An error is raised at once where the thread runs code that keeps no lock, or waits; elsewhere a
    moment later, at the end of the context at the latest. Likewise a KeyboardInterrupt that comes
    where Python cannot raise it, in a weakref callback or a `__del__`. Signals that come before it
    is raised count as the same.

    Args:
        errors: what each signal raises, by its number.

    """
    if not errors:
        yield
        return
    handling = _Handling(errors)
    before = {number: signal.signal(number, handling.handle) for number in errors}
    unraisable, sys.unraisablehook = sys.unraisablehook, handling.lose
    try:
        yield
    finally:
        handling.again.end()
        sys.unraisablehook = unraisable
        for number, handler in before.items():
            signal.signal(number, handler)
    if handling.held is not None:
        raise handling.held


def handled_errors(*numbers: int) -> dict[int, ErrorOf]:
    """Return what the handlers of signals raise; those that Python does not handle are left out.

    Other threads than the main one receive no signals, and get nothing.
    """

    def error_of(handler: Callable[[int, FrameType | None], object], number: int) -> ErrorOf:
        def raised(frame: FrameType | None) -> BaseException | None:
            try:
                handler(number, frame)
            except BaseException as error:
                return error
            return None

        return raised

    if threading.current_thread() is not threading.main_thread():
        return {}
    handlers = {number: signal.getsignal(number) for number in numbers}
    return {
        number: error_of(handler, number)
        for number, handler in handlers.items()
        if callable(handler)
    }


def may_raise(frame: FrameType | None) -> bool:
    """Return whether an error that is raised in a frame leaves no lock taken."""
    calls = []
    while frame is not None and frame.f_globals.get("__name__") in _LOCKING:
        calls.append(frame)
        frame = frame.f_back
    return not calls or (
        _waits(calls[0]) and all(call.f_code.co_name in _WAITING for call in calls[1:])
    )


def _waits(frame: FrameType) -> bool:
    """Return whether a frame is waiting, and takes again what it has let go of meanwhile."""
    if frame.f_code is threading.Condition.wait.__code__:
        return "gotit" in frame.f_locals  # set before the block that takes the lock again
    return frame.f_code.co_name in _JOINING


class _Handling:
    """Raises the errors of signals where it may, and holds them back until then.

    Attributes:
        held: what is yet to be raised.
        again: sends the signal until it is.

    """

    def __init__(self, errors: Mapping[int, ErrorOf]) -> None:
        self.held: BaseException | None = None
        self.again = _Again()
        self._errors = errors
        self._deadline = 0.0
        self._unraisable = sys.unraisablehook

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Raise the error of a signal, or have the signal sent again."""
        if self.held is None and (error := self._errors[number](frame)) is not None:
            self._hold(error)
        if self.held is None:
            return
        if may_raise(frame) or time.monotonic() > self._deadline:
            held, self.held = self.held, None
            raise held
        self.again.ask(number)

    def lose(self, lost: sys.UnraisableHookArgs) -> None:
        """Hold what was raised where it could not be; tell of what is no KeyboardInterrupt."""
        if not isinstance(lost.exc_value, KeyboardInterrupt):
            self._unraisable(lost)
            return
        self._hold(lost.exc_value)
        self.again.ask(next(iter(self._errors)))

    def _hold(self, error: BaseException) -> None:
        self.held = error
        self._deadline = time.monotonic() + _MOST_SECONDS


class _Again:
    """Sends this thread a signal once more, a moment later.

    It is asked within a signal's handler. So its thread waits from the beginning, and by a lock
    without a function in Python: to start a thread takes locks that may be taken already.
    """

    def __init__(self) -> None:
        self._main = threading.get_ident()
        self._number = 0
        self._ended = False
        self._asked = threading.Lock()
        self._asked.acquire()
        self._thread = threading.Thread(target=self._send, name="signals", daemon=True)
        self._thread.start()

    def ask(self, number: int) -> None:
        """Send a signal."""
        self._number = number
        if self._asked.locked():
            self._asked.release()

    def end(self) -> None:
        """Send nothing more."""
        self._ended = True
        self.ask(0)
        self._thread.join()

    def _send(self) -> None:
        while True:
            self._asked.acquire()
            if not self._ended:
                time.sleep(_AGAIN_SECONDS)
            if self._ended:
                return
            signal.pthread_kill(self._main, self._number)
