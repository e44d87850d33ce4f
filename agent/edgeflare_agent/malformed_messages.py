"""Bytes that are no message of the call that they came by."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import grpc

from edgeflare_agent.handlers import HandlerInterceptor, Method, altered


@dataclass(frozen=True)
class Malformed:
    """What stands for a request whose bytes are no message of its kind.

    Attributes:
        why: one line.

    """

    why: str


class MessageInterceptor(HandlerInterceptor):
    """Answer INVALID_ARGUMENT where bytes are no message.

    By itself gRPC answers INTERNAL, which stands for a fault of the agent, and never counts such a
    call as over.
    """

    def replaced(self, handler: Any, details: grpc.HandlerCallDetails) -> Any:
        """See HandlerInterceptor."""
        name = details.method.rpartition("/")[2]

        def read(content: bytes) -> Any:
            try:
                return handler.request_deserializer(content)
            except Exception:  # protobuf's implementations raise different ones
                return Malformed(f"{len(content)} bytes came that are no message of {name}")

        return altered(handler, _of_one if not handler.request_streaming else _of_many, read)


def _of_one(method: Method) -> Method:
    @functools.wraps(method)  # keeps the mark of a method that is called with what it calls back
    def checked(request: Any, context: grpc.ServicerContext, *more: Any) -> Any:
        if isinstance(request, Malformed):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, request.why)
        return method(request, context, *more)

    return checked


def _of_many(method: Method) -> Method:
    """Return a method whose requests end in a ValueError, which the service answers."""
    return lambda requests, context: method(_messages(requests), context)


def _messages(requests: Iterator[Any]) -> Iterator[Any]:
    for request in requests:
        if isinstance(request, Malformed):
            raise ValueError(request.why)
        yield request
