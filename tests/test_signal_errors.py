"""Signals that raise errors: wherever they come, no lock stays taken, and none is lost."""

from __future__ import annotations

import dis
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import pytest

from edgeflare.signal_errors import handled_errors, signal_errors

SECONDS = 60.0

HEEDED = ("RESUME", "CALL", "CALL_FUNCTION_EX", "JUMP_BACKWARD")
"""Steps after which Python runs the handlers of signals."""


class Steps:
    """The steps of something that is called, after one of which a signal comes.

    Attributes:
        done: those that have been done.

    """

    def __init__(self, at: int) -> None:
        self.done = 0
        self._at = at
        self._last: dict[FrameType, str] = {}

    def count(self, work: Callable[[], object]) -> None:
        """Call something."""
        sys.settrace(self._step)
        try:
            work()
        finally:
            sys.settrace(None)

    def _step(self, frame: FrameType, event: str, _: object) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            before = self._last.get(frame, "")
            self._last[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            self.done += before.startswith(HEEDED)
            if self.done == self._at:
                self._at = 0
                handler = signal.getsignal(signal.SIGINT)
                assert callable(handler)
                handler(signal.SIGINT, frame)
        return self._step


def ends(work: Callable[[], object]) -> bool:
    """Return whether something ends that may wait for ever, in a thread of its own."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(SECONDS)
    return not thread.is_alive()


def test_a_pool_of_threads_ends_wherever_a_signal_comes() -> None:
    """Without the context it does not where `Condition.__enter__` returns."""
    at = 0
    while True:
        at += 1
        pool, steps = ThreadPoolExecutor(1), Steps(at)
        try:
            with signal_errors(handled_errors(signal.SIGINT)):
                steps.count(lambda: pool.submit(time.sleep, 0.01).result())  # noqa: B023
        except KeyboardInterrupt:
            assert ends(pool.shutdown), f"step {at}"
        else:
            pool.shutdown()
            break
    assert steps.done < at
    assert at > 20


def comes_within_a_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a signal come where a module of Python may have a lock."""
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "__name__", "threading")
        signal.raise_signal(signal.SIGINT)


def test_what_is_held_back_is_raised_where_the_main_thread_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    condition, waited = threading.Condition(), False

    def work() -> None:
        nonlocal waited
        comes_within_a_lock(monkeypatch)
        with condition:
            waited = True
            condition.wait(SECONDS)
            waited = False

    with pytest.raises(KeyboardInterrupt), signal_errors(handled_errors(signal.SIGINT)):
        work()
    assert waited
    assert ends(condition.acquire)


def test_what_is_held_back_at_the_end_is_raised_there(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = False

    def work() -> None:
        nonlocal ended
        comes_within_a_lock(monkeypatch)
        ended = True

    with pytest.raises(KeyboardInterrupt), signal_errors(handled_errors(signal.SIGINT)):
        work()
    assert ended


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with signal_errors(handled_errors(signal.SIGINT)):
            signal.raise_signal(signal.SIGINT)
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
