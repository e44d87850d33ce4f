"""One connection to one agent: its calls with their deadlines, and what a failed call means."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import grpc

from edgeflare.devices.transports.transport import Endpoint
from edgeflare.errors import InfrastructureError, UserError
from edgeflare_protos import AUTHORIZATION, CHUNK_BYTES
from edgeflare_protos import agent_pb2 as wire
from edgeflare_protos.agent_pb2_grpc import AgentStub

Reply = TypeVar("Reply")

SHORT_CALL_SECONDS = 10.0
"""For calls that only look something up: milliseconds of work, and the rest is for a busy board."""

LOAD_SECONDS = 60.0
"""For opening a session: a worker starts (4 s under QEMU) and a large model is prepared."""

UPLOAD_BYTES_PER_SECOND = 256 * 1024
"""A slow uplink; an upload's deadline is what it takes at this speed, and a short call more."""

_CHANNEL_OPTIONS = (
    # A device is on this network; an HTTP proxy of the environment would not find it.
    ("grpc.enable_http_proxy", 0),
    # Else a new channel inherits the reconnection back-off of one that was lost.
    ("grpc.use_local_subchannel_pool", 1),
)


class DeviceLost(InfrastructureError):  # noqa: N818 - a state to recover from, not a mistake
    """The device no longer answers, or answers wrongly; `Device.reopen` may bring it back."""


class Connection:
    """A gRPC channel to an agent.

    Every method raises DeviceLost where trying again may help, and InfrastructureError where it
    would not.
    """

    def __init__(self, name: str, endpoint: Endpoint, delay_seconds: float = 0.0) -> None:
        """Prepare a connection; nothing is sent yet.

        Args:
            name: the device's name, for messages.
            endpoint: where the agent listens.
            delay_seconds: emulated latency of each round trip.

        """
        self.name = name
        self.address = endpoint.address
        self.place = name if endpoint.address in name else f"{name} ({endpoint.address})"
        self.delay_seconds = delay_seconds
        self._channel = _channel(endpoint)
        self._stub = AgentStub(self._channel)
        self._closed = False
        token = endpoint.token
        self._metadata = ((AUTHORIZATION, f"Bearer {token}"),) if token else ()

    def close(self) -> None:
        """Close the channel; calls under way end as cancelled, and later ones are lost."""
        self._closed = True
        self._channel.close()

    def describe(self, request: wire.DescribeRequest) -> wire.DescribeReply:
        """Call Describe.

        Raises:
            grpc.RpcError: as it came; the handshake knows best what it means there.

        """
        reply: wire.DescribeReply = self._send(self._stub.Describe, request, SHORT_CALL_SECONDS)
        return reply

    def upload(self, sha256: str, model: bytes) -> None:
        """Send a model to the agent's store, unless it is there already."""
        find = wire.FindModelRequest(sha256=sha256)
        found: wire.FindModelReply = self._call(self._stub.FindModel, find, SHORT_CALL_SECONDS)
        if not found.present:
            seconds = SHORT_CALL_SECONDS + len(model) / UPLOAD_BYTES_PER_SECOND
            self._call(self._stub.UploadModel, _parts(sha256, model), seconds)

    def open_session(self, request: wire.OpenSessionRequest) -> wire.OpenSessionReply:
        """Load a stored model.

        Raises:
            UserError: the device's runtime refuses the model or the options.

        """
        seconds = LOAD_SECONDS + request.warmup * request.input_timeout_seconds
        try:
            opened: wire.OpenSessionReply = self._send(self._stub.OpenSession, request, seconds)
        except grpc.RpcError as error:
            code, details = status(error)
            if code is grpc.StatusCode.INVALID_ARGUMENT:
                raise UserError(f"{self.name}: {details}") from None
            raise self.translate(error) from None
        return opened

    def close_session(self, session_id: str) -> None:
        """End a session and its worker process."""
        request = wire.CloseSessionRequest(session_id=session_id)
        self._call(self._stub.CloseSession, request, SHORT_CALL_SECONDS)

    def telemetry(self) -> wire.TelemetryReply:
        """Ask for the state of the device."""
        request = wire.TelemetryRequest()
        state: wire.TelemetryReply = self._call(self._stub.Telemetry, request, SHORT_CALL_SECONDS)
        return state

    def infer_stream(self, requests: Iterator[wire.InferRequest]) -> InferCall:
        """Begin a stream of batches; its caller watches over time, since a stream may be long."""
        call: InferCall = self._stub.InferStream(requests, metadata=self._metadata)
        return call

    def translate(self, error: grpc.RpcError) -> InfrastructureError:
        """Return what a failed call means, as one line for the user."""
        code, details = status(error)
        place = f"{self.place}: the agent"
        if code in _CURABLE:
            meaning = _CURABLE[code]
            return DeviceLost(f"{place} {meaning}" + (f": {details}" if details else ""))
        if code is grpc.StatusCode.UNAUTHENTICATED:
            return InfrastructureError(
                f"{place} does not let this host in: {details}; put its token into"
                " EDGEFLARE_TOKEN, or name a token_file in the profile"
            )
        if code is grpc.StatusCode.UNIMPLEMENTED:
            return InfrastructureError(
                f"{place} lacks a call that this host needs: {details}; install the same"
                " version of edgeflare there"
            )
        return InfrastructureError(f"{place} refuses: {details or code.name}")

    def _call(self, method: Callable[..., Reply], request: object, seconds: float) -> Reply:
        try:
            return self._send(method, request, seconds)
        except grpc.RpcError as error:
            raise self.translate(error) from None

    def _send(self, method: Callable[..., Reply], request: object, seconds: float) -> Reply:
        if self._closed:
            raise DeviceLost(f"{self.place}: the connection was closed")
        time.sleep(self.delay_seconds)
        return method(request, timeout=seconds, metadata=self._metadata)


class InferCall(Protocol):
    """A stream of batches under way: replies in order, until it ends or fails."""

    def __iter__(self) -> Iterator[wire.InferReply]:
        """Yield the replies; raises grpc.RpcError when the stream fails."""

    def cancel(self) -> None:
        """End the stream at once."""


def status(error: grpc.RpcError) -> tuple[grpc.StatusCode, str]:
    """Return a failed call's status, and its details on one line."""
    if not isinstance(error, grpc.Call):
        return grpc.StatusCode.UNKNOWN, " ".join(str(error).split())
    return error.code(), " ".join((error.details() or "").split())


_CURABLE = {
    grpc.StatusCode.ABORTED: "gave up",
    grpc.StatusCode.CANCELLED: "ended the call",
    grpc.StatusCode.DATA_LOSS: "received damaged data",
    grpc.StatusCode.DEADLINE_EXCEEDED: "did not answer in time",
    grpc.StatusCode.INTERNAL: "failed",
    grpc.StatusCode.NOT_FOUND: "has forgotten what was opened",
    grpc.StatusCode.UNAVAILABLE: "is gone",
    grpc.StatusCode.UNKNOWN: "failed",
}
"""Statuses after which a new connection and a new session may do; and what they say."""


def _channel(endpoint: Endpoint) -> grpc.Channel:
    if not endpoint.tls:
        return grpc.insecure_channel(endpoint.address, _CHANNEL_OPTIONS)
    credentials = grpc.ssl_channel_credentials(root_certificates=endpoint.tls_ca)
    return grpc.secure_channel(endpoint.address, credentials, _CHANNEL_OPTIONS)


def _parts(sha256: str, model: bytes) -> Iterator[wire.UploadModelRequest]:
    header = wire.UploadModelRequest.Header(sha256=sha256, size_bytes=len(model))
    yield wire.UploadModelRequest(header=header)
    for start in range(0, len(model), CHUNK_BYTES):
        yield wire.UploadModelRequest(chunk=model[start : start + CHUNK_BYTES])
