"""Handlers of RPCs that are made from others, as interceptors need them."""

from __future__ import annotations

from collections.abc import Callable
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
            handler: of the service, or of the next interceptor.
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
