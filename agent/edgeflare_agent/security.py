"""Who may talk to the agent: the bind rule, TLS, and the token."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from edgeflare_protos import AUTHORIZATION

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
    """Answer UNAUTHENTICATED to calls whose metadata lacks `authorization: Bearer TOKEN`."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Any],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """See grpc.ServerInterceptor."""
        handler = continuation(handler_call_details)
        if handler is None or handler_call_details.method.startswith(_OPEN_TO_ALL):
            return handler
        for key, value in handler_call_details.invocation_metadata:
            given = value if isinstance(value, bytes) else value.encode()
            if key == AUTHORIZATION and hmac.compare_digest(given, self._expected):
                return handler
        return _refusing(handler)


def _refusing(handler: Any) -> Any:
    """Return a handler of the same kind that refuses the call."""

    def refuse(_request: object, context: grpc.ServicerContext) -> Any:
        context.abort(grpc.StatusCode.UNAUTHENTICATED, "the token is missing or wrong")

    if handler.request_streaming and handler.response_streaming:
        return grpc.stream_stream_rpc_method_handler(refuse)
    if handler.request_streaming:
        return grpc.stream_unary_rpc_method_handler(refuse)
    return grpc.unary_unary_rpc_method_handler(refuse)
