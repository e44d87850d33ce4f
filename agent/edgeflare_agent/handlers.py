"""Handlers of RPCs that are made from others, as interceptors need them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import grpc

Method = Callable[..., Any]
"""What answers an RPC: it takes the request, or all requests, and the context."""

_MAKERS = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


class HandlerInterceptor(grpc.ServerInterceptor):
    """Answers some RPCs otherwise than the service, by other handlers."""

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Any],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """See grpc.ServerInterceptor."""
        handler = continuation(handler_call_details)
        return None if handler is None else self.replaced(handler, handler_call_details)

    def replaced(self, handler: Any, details: grpc.HandlerCallDetails) -> Any:
        """Return what answers a call.

        Args:
            handler: handler of the service, or of the next interceptor.
            details: the method's name, and the metadata that came.

        """
        raise NotImplementedError


def altered(
    handler: Any, alter: Callable[[Method], Method], read: Callable[[bytes], Any] | None = None
) -> Any:
    """Return a handler of the same kind with another method.

    Args:
        handler: as gRPC has it.
        alter: returns the new method; it gets the old one.
        read: makes a request of its bytes; None for as before.

    """
    method = (
        handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
    )
    make = _MAKERS[handler.request_streaming, handler.response_streaming]
    return make(alter(method), read or handler.request_deserializer, handler.response_serializer)


@dataclass(frozen=True)
class _Malformed:
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
                return _Malformed(f"{len(content)} bytes came that are no message of {name}")

        return altered(handler, _of_one if not handler.request_streaming else _of_many, read)


def _of_one(method: Method) -> Method:
    @functools.wraps(method)  # keeps the mark of a method that is called with what it calls back
    def checked(request: Any, context: grpc.ServicerContext, *more: Any) -> Any:
        if isinstance(request, _Malformed):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, request.why)
        return method(request, context, *more)

    return checked


def _of_many(method: Method) -> Method:
    """Return a method whose requests end in a ValueError, which the service answers."""
    return lambda requests, context: method(_messages(requests), context)


def _messages(requests: Iterator[Any]) -> Iterator[Any]:
    for request in requests:
        if isinstance(request, _Malformed):
            raise ValueError(request.why)
        yield request
