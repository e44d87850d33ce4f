"""One connection to one agent: its calls with their deadlines, and what a failed call means."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import grpc

from edgeflare.devices.transports.transport import Endpoint
from edgeflare.errors import InfrastructureError, UserError
from edgeflare_protos import AUTHORIZATION, Sealed, message_crc32, seal_holds
from edgeflare_protos import agent_pb2 as wire
from edgeflare_protos.agent_pb2_grpc import AgentStub
from edgeflare_protos.lease_words import LEASE, lease_token
from edgeflare_protos.limits import CHUNK_BYTES

Reply = TypeVar("Reply")

SHORT_CALL_SECONDS = 10.0
"""Seconds for calls that only look something up: milliseconds of work, room for a busy board."""

HEARTBEAT_SECONDS = 5.0
"""Seconds for the question whether a session is at work, and for its lease; an agent answers beside
that work."""

LOAD_SECONDS = 200.0
"""Seconds for opening a session: a worker starts (4 s under QEMU) and a large model is prepared.
Longer than the agent's own limit of 180 s, so that the agent has the word on what went wrong."""

SLOW_LINK_BYTES_PER_SECOND = 256 * 1024
"""A slow link: a deadline leaves as long as what is sent and answered takes at this speed."""

HASHED_BYTES_PER_SECOND = 2 * 1024 * 1024
"""A worn SD card under load; before it says that it has a model, an agent reads and hashes it."""

SILENCE_SECONDS = 10.0
"""Seconds without a word from the device after which gRPC asks whether it is still there."""

SIGN_OF_LIFE_SECONDS = 45.0
"""Seconds for the answer whether a device is still there: on a slow uplink the question waits
behind the megabytes of a model that fill the sockets' buffers. So a cable that was pulled is
noticed within a minute, also while nothing is under way."""

# What cannot be read is answered by a status, which we translate; these two add a traceback.
for _name in ("grpc._common", "grpc._cython.cygrpc"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)

_CHANNEL_OPTIONS = (
    # A device is on this network; an HTTP proxy of the environment would not find it.
    ("grpc.enable_http_proxy", 0),
    # Else a new channel inherits the reconnection back-off of one that was lost.
    ("grpc.use_local_subchannel_pool", 1),
    # Else gRPC stops asking after the second time.
    ("grpc.http2.max_pings_without_data", 0),
)


class DeviceLost(InfrastructureError):  # noqa: N818 - a state to recover from, not a mistake
    """The device no longer answers, or answers wrongly; `Device.reopen` may bring it back."""


class LeaseEnded(DeviceLost):
    """The agent no longer lets this host use the device; see `AgentLease`."""


class ModelMissing(DeviceLost):
    """The agent does not have a model, or has just found its copy damaged and removed it."""


class Connection:
    """A gRPC channel to an agent.

    Every method raises DeviceLost where trying again may help, and InfrastructureError where it
    would not.
    """

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        delay_seconds: float = 0.0,
        *,
        connect_seconds: float | None = None,
        upload_seconds: float | None = None,
    ) -> None:
        """Prepare a connection; nothing is sent yet.

        Args:
            name: the device's name, for messages.
            endpoint: where the agent listens.
            delay_seconds: emulated latency of each round trip.
            connect_seconds: time that the first answer may take; None for SHORT_CALL_SECONDS.
            upload_seconds: time that a model may take to be sent; None for what its size takes at
                SLOW_LINK_BYTES_PER_SECOND.

        """
        self._connect_seconds = connect_seconds
        self._upload_seconds = upload_seconds
        self.name = name
        self.address = endpoint.address
        self.place = name if endpoint.address in name else f"{name} ({endpoint.address})"
        self.delay_seconds = delay_seconds
        self._channel = _channel(endpoint)
        self._stub = AgentStub(self._channel)
        self._closed = False
        token = endpoint.token
        self._metadata = ((AUTHORIZATION, f"Bearer {token}"),) if token else ()
        self._lease_number = 0
        self._confirm_lease: Callable[[], None] = lambda: None

    def close(self) -> None:
        """Close the channel; calls under way end as cancelled, and later ones are lost."""
        self._closed = True
        self._channel.close()

    def describe(self, request: wire.DescribeRequest) -> wire.DescribeReply:
        """Call Describe.

        Raises:
            grpc.RpcError: as it came; the handshake knows best what it means there.

        """
        seconds = self._connect_seconds or SHORT_CALL_SECONDS
        reply: wire.DescribeReply = self._send(self._stub.Describe, request, seconds)
        self.check(reply)
        return reply

    def check(self, reply: Sealed) -> None:
        """Hold a reply to its seal.

        Raises:
            DeviceLost: it was damaged on its way.

        """
        if not seal_holds(reply):
            raise DeviceLost(f"{self.place}: a reply arrived damaged")

    def check_leased(self, reply: Leased) -> None:
        """Hold a reply to its seal, and to the lease of this host.

        Raises:
            DeviceLost: it was damaged on its way, or given under another lease, or the lease has
                ended before it arrived.

        """
        self.check(reply)
        if reply.lease_number != self._lease_number:
            raise LeaseEnded(f"{self.place}: a reply arrived that was given under another lease")
        self._confirm_lease()

    def carry_lease(self, number: int, secret: str, confirm: Callable[[], None]) -> None:
        """Show a lease with all later calls.

        Args:
            number: as the agent gave it.
            secret: secret by which the agent knows this host.
            confirm: raises DeviceLost where the lease may have ended.

        """
        self._metadata = (*self._metadata, (LEASE, lease_token(number, secret)))
        self._lease_number = number
        self._confirm_lease = confirm

    def acquire_lease(self, request: wire.AcquireLeaseRequest) -> wire.AcquireLeaseReply:
        """Ask for the lease of the device."""
        reply: wire.AcquireLeaseReply = self._call(
            self._stub.AcquireLease, request, SHORT_CALL_SECONDS
        )
        self.check(reply)
        return reply

    def renew_lease(self) -> float:
        """Renew the lease, and return for how many seconds from now it holds at least.

        Raises:
            LeaseEnded: see there.

        """
        request = wire.RenewLeaseRequest()
        reply: wire.RenewLeaseReply = self._call(self._stub.RenewLease, request, HEARTBEAT_SECONDS)
        self.check(reply)
        return reply.remaining_seconds

    def release_lease(self) -> None:
        """Give the lease back."""
        self._call(self._stub.ReleaseLease, wire.ReleaseLeaseRequest(), HEARTBEAT_SECONDS)

    def open_model(self, model: bytes, request: wire.OpenSessionRequest) -> wire.OpenSessionReply:
        """Send a model unless the agent has it, and load it; send it again if it was damaged."""
        self.upload(request.model_sha256, model)
        try:
            return self.open_session(request)
        except ModelMissing:
            self.upload(request.model_sha256, model)
            return self.open_session(request)

    def upload(self, sha256: str, model: bytes) -> None:
        """Send a model to the agent's store, unless it is there already, undamaged."""
        find = wire.FindModelRequest(sha256=sha256)
        seconds = SHORT_CALL_SECONDS + len(model) / HASHED_BYTES_PER_SECOND
        found: wire.FindModelReply = self._call(self._stub.FindModel, find, seconds)
        if not found.present:
            usual = SHORT_CALL_SECONDS + len(model) / SLOW_LINK_BYTES_PER_SECOND
            seconds = self._upload_seconds or usual
            self._call(self._stub.UploadModel, _parts(sha256, model), seconds)

    def open_session(self, request: wire.OpenSessionRequest) -> wire.OpenSessionReply:
        """Load a stored model.

        Raises:
            ModelMissing: see there.

        """
        seconds = LOAD_SECONDS + request.warmup * request.input_timeout_seconds
        try:
            opened: wire.OpenSessionReply = self._send(self._stub.OpenSession, request, seconds)
        except grpc.RpcError as error:
            code, details = status(error)
            if code is grpc.StatusCode.INVALID_ARGUMENT:
                raise UserError(f"{self.name}: {details}") from None
            if code is grpc.StatusCode.NOT_FOUND:
                raise ModelMissing(f"{self.place}: the agent has lost it: {details}") from None
            raise self.translate(error) from None
        self.check(opened)
        if opened.request_crc32 != message_crc32(request):
            raise DeviceLost(f"{self.place}: the request to open a model arrived damaged")
        return opened

    def close_session(self, session_id: str) -> None:
        """End a session and its worker process."""
        request = wire.CloseSessionRequest(session_id=session_id)
        self._call(self._stub.CloseSession, request, SHORT_CALL_SECONDS)

    def telemetry(self) -> wire.TelemetryReply:
        """Ask for the state of the device."""
        request = wire.TelemetryRequest()
        state: wire.TelemetryReply = self._call(self._stub.Telemetry, request, SHORT_CALL_SECONDS)
        self.check(state)
        return state

    def idle_seconds(self, session_id: str, transfer_seconds: float = 0.0) -> float:
        """Return the time since a session ended its last batch; 0 while it runs one.

        Args:
            session_id: the session.
            transfer_seconds: what is on its way already may take so long, and the question waits
                behind it.

        """
        request = wire.TelemetryRequest(session_id=session_id)
        seconds = HEARTBEAT_SECONDS + transfer_seconds
        state: wire.TelemetryReply = self._call(self._stub.Telemetry, request, seconds)
        self.check(state)
        return state.idle_seconds

    def capture(
        self, request: wire.CaptureRequest, seconds: float, most_bytes: int
    ) -> list[wire.CaptureReply]:
        """Run one input, and return the parts of its answer, at least one.

        Args:
            request: the input.
            seconds: the most that it may take.
            most_bytes: bytes of all outputs; no more are taken.

        """
        replies: list[wire.CaptureReply] = []
        try:
            for reply in self._send(self._stub.Capture, request, seconds):
                replies.append(reply)
                most_bytes -= len(reply.chunk)
                if most_bytes < 0 or not (reply.chunk or len(replies) == 1):
                    raise DeviceLost(f"{self.place}: more arrived than the outputs of its model")
        except grpc.RpcError as error:
            raise self.translate(error) from None
        if not replies:
            raise DeviceLost(f"{self.place}: the agent answered nothing")
        return replies

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
        if code is grpc.StatusCode.FAILED_PRECONDITION:
            return LeaseEnded(f"{place} refuses: {details}")
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

    def lost(self, error: grpc.RpcError) -> DeviceLost:
        """Return the error for a stream that ended after it had begun well.

        Whatever the status, a new connection may do: a request that was damaged on its way is
        refused like a wrong one.
        """
        return DeviceLost(str(self.translate(error)))

    def _call(self, method: Callable[..., Reply], request: object, seconds: float) -> Reply:
        try:
            return self._send(method, request, seconds)
        except grpc.RpcError as error:
            raise self.translate(error) from None

    def _send(self, method: Callable[..., Reply], request: object, seconds: float) -> Reply:
        if self._closed:
            raise DeviceLost(f"{self.place}: the connection was closed")
        time.sleep(self.delay_seconds)
        try:
            reply: Reply | None = method(request, timeout=seconds, metadata=self._metadata)
        except ValueError:
            if self._closed:  # meanwhile, by another thread
                raise DeviceLost(f"{self.place}: the connection was closed") from None
            raise
        if reply is None:  # what was damaged may look like a success without a message
            raise DeviceLost(f"{self.place}: the agent answered nothing")
        return reply


class Leased(Sealed, Protocol):
    """A reply that was given under a lease."""

    lease_number: int


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
    sign_of_life = int(SIGN_OF_LIFE_SECONDS * 1000)
    options = (
        *_CHANNEL_OPTIONS,
        ("grpc.keepalive_time_ms", int(SILENCE_SECONDS * 1000)),
        ("grpc.keepalive_timeout_ms", sign_of_life),
        # What newer versions of gRPC go by, and would let pass a minute.
        ("grpc.http2.ping_timeout_ms", sign_of_life),
    )
    if not endpoint.tls:
        return grpc.insecure_channel(endpoint.address, options)
    credentials = grpc.ssl_channel_credentials(root_certificates=endpoint.tls_ca)
    return grpc.secure_channel(endpoint.address, credentials, options)


def _parts(sha256: str, model: bytes) -> Iterator[wire.UploadModelRequest]:
    header = wire.UploadModelRequest.Header(sha256=sha256, size_bytes=len(model))
    yield wire.UploadModelRequest(header=header)
    for start in range(0, len(model), CHUNK_BYTES):
        yield wire.UploadModelRequest(chunk=model[start : start + CHUNK_BYTES])
