"""Access to the agent: the rule for bind addresses, TLS, and the token."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from edgeflare_agent.wrong_tokens import WrongTokens
from edgeflare_protos import AUTHORIZATION, TOO_MANY_WRONG_TOKENS

# Asking whether the agent is alive needs no token: a supervisor has none.
_OPEN_TO_ALL = "/grpc.health.v1.Health/"


class Refused(Exception):  # noqa: N818
    """The agent does not start as it was told to; the message is one line."""


@dataclass(frozen=True)
class Security:
    """What guards the port.

    Attributes:
        credentials: TLS with the agent's key and certificate, or None for plain text.
        token: what a host must know, or None.

    """

    credentials: grpc.ServerCredentials | None
    token: str | None


def read_security(
    host: str, tls_cert: Path | None, tls_key: Path | None, token_file: Path | None
) -> Security:
    """Read certificate, key and token, and hold them against the bind rule.

    Any address other than loopback needs both TLS and a token.

    Args:
        host: numeric address to bind, or "localhost".
        tls_cert: PEM file with the certificate chain.
        tls_key: PEM file with its private key.
        token_file: file whose first line is the token.

    Raises:
        Refused: the address is no numeric one, the rule is broken, or a file cannot be used.

    """
    if (tls_cert is None) != (tls_key is None):
        raise Refused("--tls-cert and --tls-key go together")
    if not is_loopback(host) and (tls_cert is None or token_file is None):
        raise Refused(
            f"--host {host} is reachable by others and needs --tls-cert, --tls-key and "
            "--token-file; without them only 127.0.0.1 or ::1 will do"
        )
    credentials = None
    if tls_cert is not None and tls_key is not None:
        pair = (_read(tls_key, "--tls-key"), _read(tls_cert, "--tls-cert"))
        credentials = grpc.ssl_server_credentials([pair])
    token = None if token_file is None else _read_token(token_file)
    return Security(credentials, token)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address.

    Raises:
        Refused: it is no numeric address; devices without DNS are common.

    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise Refused(f"--host {host} is not a numeric address such as 127.0.0.1 or ::1") from None


def _read(path: Path, flag: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Refused(f"{flag}: cannot read {path}: {error.strerror}") from error


def _read_token(path: Path) -> str:
    lines = _read(path, "--token-file").decode(errors="replace").split("\n")
    token = lines[0].strip()
    if not token or not token.isascii():
        raise Refused(f"--token-file: the first line of {path} holds no token in plain ASCII")
    return token


class TokenInterceptor(grpc.ServerInterceptor):
    """Answer UNAUTHENTICATED to calls whose metadata lacks `authorization: Bearer TOKEN`.

    Where too many came with a wrong one, a call of an unknown connection is answered
    RESOURCE_EXHAUSTED, whatever its token; see WrongTokens.
    """

    def __init__(self, token: str, attempts: WrongTokens | None = None) -> None:
        self._expected = f"Bearer {token}".encode()
        self._attempts = attempts or WrongTokens()

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Any],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """See grpc.ServerInterceptor."""
        handler = continuation(handler_call_details)
        if handler is None or handler_call_details.method.startswith(_OPEN_TO_ALL):
            return handler
        if self._is_right(handler_call_details):
            return _checked_first(handler, lambda context: self._check(context, right=True))
        return _refusing(handler, lambda context: self._check(context, right=False))

    def _is_right(self, details: grpc.HandlerCallDetails) -> bool:
        for key, value in details.invocation_metadata:
            given = value if isinstance(value, bytes) else value.encode()
            if key == AUTHORIZATION and hmac.compare_digest(given, self._expected):
                return True
        return False

    def _check(self, context: grpc.ServicerContext, *, right: bool) -> None:
        admitted = self._attempts.admits(context.peer(), right=right)
        if admitted is None:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, TOO_MANY_WRONG_TOKENS)
        if not admitted:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "the token is missing or wrong")


def _checked_first(handler: Any, check: Callable[[grpc.ServicerContext], None]) -> Any:
    """Return a handler that does the same after a check, which may abort the call."""

    def answer(request: Any, context: grpc.ServicerContext) -> Any:
        check(context)
        return method(request, context)

    def stream(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        check(context)
        yield from method(request, context)

    codecs = (handler.request_deserializer, handler.response_serializer)
    if handler.request_streaming and handler.response_streaming:
        method = handler.stream_stream
        return grpc.stream_stream_rpc_method_handler(stream, *codecs)
    if handler.request_streaming:
        method = handler.stream_unary
        return grpc.stream_unary_rpc_method_handler(answer, *codecs)
    if handler.response_streaming:
        method = handler.unary_stream
        return grpc.unary_stream_rpc_method_handler(stream, *codecs)
    method = handler.unary_unary
    return grpc.unary_unary_rpc_method_handler(answer, *codecs)


def _refusing(handler: Any, refuse: Callable[[grpc.ServicerContext], None]) -> Any:
    """Return a handler of the same kind that reads no request and refuses the call."""

    def answer(_request: object, context: grpc.ServicerContext) -> Any:
        refuse(context)

    if handler.request_streaming and handler.response_streaming:
        return grpc.stream_stream_rpc_method_handler(answer)
    if handler.request_streaming:
        return grpc.stream_unary_rpc_method_handler(answer)
    return grpc.unary_unary_rpc_method_handler(answer)
