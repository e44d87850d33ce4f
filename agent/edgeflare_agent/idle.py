"""The time since the last call of a host, so that an agent whose host has died can end."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc

from edgeflare_agent.handlers import HandlerInterceptor, altered

# A supervisor asks whether the agent is alive; it is not a host that needs the agent.
_NO_HOST = "/grpc.health.v1.Health/"

_LOOK_SECONDS = 0.2


class IdleWatch(HandlerInterceptor):
    """Counts the messages that are being worked on, and remembers when there was last one.

    A stream that waits for its host's next message is idle: that host may be gone.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy = 0
        self._last = time.monotonic()

    @property
    def idle_seconds(self) -> float:
        """Return the time since the last message was answered, 0 while one is worked on."""
        with self._lock:
            return 0.0 if self._busy else time.monotonic() - self._last

    def replaced(self, handler: Any, details: grpc.HandlerCallDetails) -> Any:
        """See HandlerInterceptor."""
        if details.method.startswith(_NO_HOST):
            return handler
        return altered(handler, self._stream if handler.response_streaming else self._call)

    def _call(self, method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def watched(request: Any, context: grpc.ServicerContext) -> Any:
            with self._work():
                return method(self._incoming(request), context)

        return watched

    def _stream(self, method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Iterator[Any]]:
        def watched(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            with self._work():
                yield from method(self._incoming(request), context)

        return watched

    def _incoming(self, request: Any) -> Any:
        return self._awaited(request) if isinstance(request, Iterator) else request

    def _awaited(self, requests: Iterator[Any]) -> Iterator[Any]:
        """Yield a stream's requests; waiting for the next one is no work."""
        while True:
            with self._rest():
                request = next(requests, None)
            if request is None:
                return
            yield request

    @contextlib.contextmanager
    def _work(self) -> Iterator[None]:
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    @contextlib.contextmanager
    def _rest(self) -> Iterator[None]:
        self._count(-1)
        try:
            yield
        finally:
            self._count(1)

    def _count(self, step: int) -> None:
        with self._lock:
            self._busy += step
            self._last = time.monotonic()


class Stop:
    """The wish that the agent ends, which the handler of a signal may set.

    The handler of `threading.Event` would wait for ever where the main thread, which it interrupts,
    has the lock of the event at that moment.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        """Have whoever waits go on. Setting it again is no error."""
        with contextlib.suppress(RuntimeError):
            self._lock.release()

    def wait(self, seconds: float) -> bool:
        """Wait until it is set, but no longer than that, and return whether it was; once."""
        return self._lock.acquire(timeout=seconds)


def wait_until(
    stop: Stop,
    watch: IdleWatch,
    limit_seconds: float | None,
    look: Callable[[], object],
) -> None:
    """Wait until told to stop, or until nobody has asked anything for that long.

    Called in the main thread, it wakes up now and then even where nothing is to be done:
    Python runs the handler of a signal there, and a signal that comes while the thread is just
    about to wait, or that another thread takes, does not wake it.

    Args:
        stop: is set to stop.
        watch: knows when somebody last asked.
        limit_seconds: seconds without a request that end the wait; None for no limit.
        look: is called every fifth of a second meanwhile.

    """
    while not stop.wait(_LOOK_SECONDS):
        look()
        if limit_seconds is not None and watch.idle_seconds >= limit_seconds:
            return
