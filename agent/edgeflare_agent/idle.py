"""The time since the last call of a host, so that an agent whose host has died can end."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc

# A supervisor asks whether the agent is alive; it is not a host that needs the agent.
_NO_HOST = "/grpc.health.v1.Health/"

_LOOK_SECONDS = 0.2


class IdleWatch(grpc.ServerInterceptor):
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

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Any],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """See grpc.ServerInterceptor."""
        handler = continuation(handler_call_details)
        if handler is None or handler_call_details.method.startswith(_NO_HOST):
            return handler
        codecs = (handler.request_deserializer, handler.response_serializer)
        if handler.stream_stream:
            watched = self._stream(handler.stream_stream)
            return grpc.stream_stream_rpc_method_handler(watched, *codecs)
        if handler.unary_stream:
            watched = self._stream(handler.unary_stream)
            return grpc.unary_stream_rpc_method_handler(watched, *codecs)
        if handler.stream_unary:
            watched = self._call(handler.stream_unary)
            return grpc.stream_unary_rpc_method_handler(watched, *codecs)
        return grpc.unary_unary_rpc_method_handler(self._call(handler.unary_unary), *codecs)

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


def wait_until(stop: threading.Event, watch: IdleWatch, limit_seconds: float | None) -> None:
    """Wait until told to stop, or until nobody has asked anything for that long.

    Called in the main thread, it wakes up now and then even where there is nothing to look at:
    Python runs the handler of a signal there, and a signal that comes while the thread is just
    about to wait, or that another thread takes, does not wake it.
    """
    while not stop.wait(_LOOK_SECONDS):
        if limit_seconds is not None and watch.idle_seconds >= limit_seconds:
            return
