"""The first call: whether an agent answers, accepts our token, and has our protocol version."""

from __future__ import annotations

import socket
import time

import grpc

from edgeflare.devices.connection import Connection, DeviceLost, status
from edgeflare.devices.transports.transport import split_address
from edgeflare.errors import InfrastructureError
from edgeflare_protos import PROTOCOL_MAJOR, PROTOCOL_MINOR, TOO_MANY_WRONG_TOKENS
from edgeflare_protos import agent_pb2 as wire

PROBE_SECONDS = 2.0
"""Seconds for one TCP connection to an address that gRPC has just failed to reach."""


def shake_hands(connection: Connection) -> wire.DescribeReply:
    """Return what the agent says of its device.

    Raises:
        DeviceLost: nobody is there, or nobody that answers.
        InfrastructureError: somebody is there, but no agent that this host can work with.

    """
    ours = wire.ProtocolVersion(major=PROTOCOL_MAJOR, minor=PROTOCOL_MINOR)
    reply = _described(connection, wire.DescribeRequest(protocol=ours))
    if reply.protocol.major != PROTOCOL_MAJOR:
        theirs = f"{reply.protocol.major}.{reply.protocol.minor}"
        raise _other_version(connection, f"it speaks {theirs}")
    return reply


_ATTEMPTS = 5
"""Times that an agent may be too busy with wrong tokens to look at ours."""

_PAUSE_SECONDS = 1.0
"""Seconds between attempts: five times what an agent takes to recover from wrong tokens."""


def _described(connection: Connection, request: wire.DescribeRequest) -> wire.DescribeReply:
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE_SECONDS)
        try:
            return connection.describe(request)
        except grpc.RpcError as error:
            failure = error
            if status(error)[1] != TOO_MANY_WRONG_TOKENS:
                break
    raise _diagnosis(connection, failure) from None


_CUT = "Stream removed"
"""What gRPC says of a call whose connection ended under it, where it knows no more."""


def _diagnosis(connection: Connection, error: grpc.RpcError) -> InfrastructureError:
    code, details = status(error)
    place = connection.place
    if code is grpc.StatusCode.FAILED_PRECONDITION:
        return _other_version(connection, details)
    if code is grpc.StatusCode.UNKNOWN and details == _CUT:
        return DeviceLost(f"{place}: the connection broke off during the handshake")
    if code in (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.UNKNOWN):
        return InfrastructureError(
            f"{place}: something answers there, but it is no EdgeFlare agent ({details});"
            " check the port that the agent printed when it started"
        )
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return DeviceLost(f"{place}: no answer in time; is it an EdgeFlare agent, and is it awake?")
    if code is grpc.StatusCode.UNAVAILABLE:
        return _unavailable(place, _refusal(connection.address), details)
    return connection.translate(error)


def _unavailable(place: str, refusal: str, details: str) -> InfrastructureError:
    if refusal:
        return DeviceLost(
            f"{place}: nobody is there ({refusal}); start an agent with `edgeflare agent serve`,"
            " or correct the address"
        )
    if "certificate" in details.lower() or "handshake" in details.lower():
        return InfrastructureError(
            f"{place}: the agent's certificate is not trusted ({details}); name the authority"
            " that signed it as tls_ca in the profile, or in EDGEFLARE_TLS_CA"
        )
    return DeviceLost(
        f"{place}: something listens there, but does not speak like an EdgeFlare agent"
        f" ({details}); check the port, and whether the agent wants TLS"
    )


def _refusal(address: str) -> str:
    """Return why not even a TCP connection comes about; empty if one does."""
    try:
        socket.create_connection(split_address(address), PROBE_SECONDS).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _other_version(connection: Connection, details: str) -> InfrastructureError:
    return InfrastructureError(
        f"{connection.place}: the agent speaks another version of the"
        f" protocol than this host, which speaks {PROTOCOL_MAJOR}.{PROTOCOL_MINOR} ({details});"
        " install the same version of edgeflare on both"
    )
