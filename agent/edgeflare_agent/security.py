"""Access to the agent: the rule for bind addresses, TLS, and the token."""

from __future__ import annotations

import functools
import hmac
import ipaddress
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from edgeflare_agent.handlers import HandlerInterceptor, Method, altered
from edgeflare_agent.unauthenticated_connections import WrongTokens
from edgeflare_protos import AUTHORIZATION, TOO_MANY_WRONG_TOKENS

# Asking whether the agent is alive needs no token: a supervisor has none.
_OPEN_TO_ALL = "/grpc.health.v1.Health/"

_REFUSING_THREADS = 2


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


class TokenInterceptor(HandlerInterceptor):
    """Answer UNAUTHENTICATED to calls whose metadata lacks `authorization: Bearer TOKEN`.

    Where too many came with a wrong one, a call of an unknown connection is answered
    RESOURCE_EXHAUSTED, whatever its token; see WrongTokens. Who is refused, and who asks after the
    agent's health, takes no thread from the hosts.

    Args:
        token: what hosts must know; None where each call is a host's.
        attempts: counts the wrong ones.

    """

    def __init__(self, token: str | None, attempts: WrongTokens) -> None:
        self._expected = None if token is None else f"Bearer {token}".encode()
        self._attempts = attempts
        # Apart, since a question after health may wait for bytes that never come.
        self._refusals = ThreadPoolExecutor(_REFUSING_THREADS, thread_name_prefix="refusal")
        self._health = ThreadPoolExecutor(_REFUSING_THREADS, thread_name_prefix="health")

    def replaced(self, handler: Any, details: grpc.HandlerCallDetails) -> Any:
        """See HandlerInterceptor."""
        if details.method.startswith(_OPEN_TO_ALL):
            return altered(handler, lambda method: _run_by(self._health, method))
        if self._is_right(details):
            alter = self._streaming if handler.response_streaming else self._answering
            return altered(handler, alter)
        # Of this kind whatever the call's: for a single request gRPC would wait before it refuses.
        return grpc.stream_stream_rpc_method_handler(_run_by(self._refusals, self._refuse))

    def _is_right(self, details: grpc.HandlerCallDetails) -> bool:
        if self._expected is None:
            return True
        for key, value in details.invocation_metadata:
            given = value if isinstance(value, bytes) else value.encode()
            if key == AUTHORIZATION and hmac.compare_digest(given, self._expected):
                return True
        return False

    def _answering(self, method: Method) -> Method:
        def answer(request: Any, context: grpc.ServicerContext) -> Any:
            self._check(context, right=True)
            return method(request, context)

        return answer

    def _streaming(self, method: Method) -> Method:
        def stream(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            self._check(context, right=True)
            yield from method(request, context)

        return stream

    def _refuse(self, _requests: object, context: grpc.ServicerContext) -> None:
        self._check(context, right=False)

    def _check(self, context: grpc.ServicerContext, *, right: bool) -> None:
        admitted = self._attempts.admits(context.peer(), right=right)
        if admitted is None:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, TOO_MANY_WRONG_TOKENS)
        if not admitted:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "the token is missing or wrong")


def _run_by(threads: ThreadPoolExecutor, method: Method) -> Method:
    """Return the method as one that gRPC runs in these threads."""

    @functools.wraps(method)  # keeps the mark of a method that returns before its stream ends
    def run(*arguments: Any) -> Any:
        return method(*arguments)

    # gRPC looks for an attribute of this name.
    run.experimental_thread_pool = threads  # type: ignore[attr-defined]
    return run
