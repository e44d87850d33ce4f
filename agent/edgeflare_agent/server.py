"""The gRPC service: each RPC of agent.proto, and its status where a request fails."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import grpc

from edgeflare_agent import __version__, machine
from edgeflare_agent.device_lease import DeviceLease, Grant, NotLeased
from edgeflare_agent.model_store import BadName, Corrupted, ModelStore, StoreFull, UnknownModel
from edgeflare_agent.requests import (
    check_batch,
    check_capture,
    check_lease_request,
    model_chunks,
    session_options,
)
from edgeflare_agent.runtime import (
    Failure,
    FailureKind,
    ModelRejected,
    TensorSpec,
    WorkerLost,
    offered_kernel_sets,
    runtime_info,
)
from edgeflare_agent.sessions import Sessions, TooManySessions, UnknownSession
from edgeflare_agent.tracebacks import Tracebacks
from edgeflare_protos import (
    PROTOCOL_MAJOR,
    PROTOCOL_MINOR,
    agent_pb2,
    crc32,
    message_crc32,
    set_seal,
)
from edgeflare_protos.agent_pb2_grpc import AgentServicer
from edgeflare_protos.lease_words import LEASE
from edgeflare_protos.limits import CHUNK_BYTES, FAILURE_TEXT_BYTES, PAYLOAD_LIMIT_BYTES

_KINDS: dict[FailureKind, agent_pb2.InputFailure.Kind] = {
    "crash": agent_pb2.InputFailure.KIND_CRASH,
    "hang": agent_pb2.InputFailure.KIND_HANG,
    "error": agent_pb2.InputFailure.KIND_ERROR,
}


class OtherProtocol(Exception):  # noqa: N818
    """The host speaks another major version."""


_STATUSES: dict[type[Exception], grpc.StatusCode] = {
    BadName: grpc.StatusCode.INVALID_ARGUMENT,
    Corrupted: grpc.StatusCode.DATA_LOSS,
    ModelRejected: grpc.StatusCode.INVALID_ARGUMENT,
    NotLeased: grpc.StatusCode.FAILED_PRECONDITION,
    OtherProtocol: grpc.StatusCode.FAILED_PRECONDITION,
    StoreFull: grpc.StatusCode.RESOURCE_EXHAUSTED,
    TooManySessions: grpc.StatusCode.RESOURCE_EXHAUSTED,
    UnknownModel: grpc.StatusCode.NOT_FOUND,
    UnknownSession: grpc.StatusCode.NOT_FOUND,
    ValueError: grpc.StatusCode.INVALID_ARGUMENT,
    WorkerLost: grpc.StatusCode.UNAVAILABLE,
}


class AgentService(AgentServicer):
    """The agent's RPCs.

    Args:
        store: where models are kept.
        sessions: the open sessions.
        lease: of the device.
        allowed_delegates: libraries that a host may name as a delegate.
        system_root: where the device's own /proc and /sys are to be found.

    """

    def __init__(
        self,
        store: ModelStore,
        sessions: Sessions,
        lease: DeviceLease,
        allowed_delegates: Sequence[str] = (),
        system_root: Path = Path("/"),
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._lease = lease
        self._allowed_delegates = allowed_delegates
        self._system_root = system_root
        self._machine = machine.describe(system_root)
        self._runtime = runtime_info()
        self._kernel_sets = offered_kernel_sets()
        self._began = time.monotonic()

    def Describe(  # noqa: N802
        self, request: agent_pb2.DescribeRequest, context: grpc.ServicerContext
    ) -> agent_pb2.DescribeReply:
        """Shake hands, and say what the device is."""
        with _statuses(context):
            theirs = request.protocol
            if theirs.major != PROTOCOL_MAJOR:
                raise OtherProtocol(
                    f"the host speaks protocol {theirs.major}.{theirs.minor}, "
                    f"this agent {PROTOCOL_MAJOR}.{PROTOCOL_MINOR}: "
                    "install the same release of EdgeFlare on both"
                )
            return self._description()

    def FindModel(  # noqa: N802
        self, request: agent_pb2.FindModelRequest, context: grpc.ServicerContext
    ) -> agent_pb2.FindModelReply:
        """Say whether a model is in the store."""
        with _statuses(context):
            self._lease.admit(_lease_of(context))
            return agent_pb2.FindModelReply(present=request.sha256 in self._store)

    def UploadModel(  # noqa: N802
        self,
        request_iterator: Iterator[agent_pb2.UploadModelRequest],
        context: grpc.ServicerContext,
    ) -> agent_pb2.UploadModelReply:
        """Receive a model."""
        with _statuses(context):
            parts = self._admitted(request_iterator, _lease_of(context))
            first = next(parts, None)
            if first is None or not first.HasField("header"):
                raise ValueError("an upload begins with its header")
            header = first.header
            chunks = model_chunks(parts)
            evicted = self._store.add(header.sha256, header.size_bytes, chunks)
            return agent_pb2.UploadModelReply(evicted_sha256s=evicted)

    def OpenSession(  # noqa: N802
        self, request: agent_pb2.OpenSessionRequest, context: grpc.ServicerContext
    ) -> agent_pb2.OpenSessionReply:
        """Load a stored model into a worker of its own."""
        with _statuses(context):
            lease = _lease_of(context)
            self._lease.admit(lease)
            options = session_options(request, self._allowed_delegates)
            session_id, model = self._sessions.open(
                request.model_sha256, options, request.resume_token
            )
            try:
                self._lease.admit(lease)  # loading may take longer than a lease
            except NotLeased:
                self._sessions.close(session_id)
                raise
            reply = agent_pb2.OpenSessionReply(
                session_id=session_id,
                inputs=map(_tensor, model.inputs),
                outputs=map(_tensor, model.outputs),
                delegated_nodes=model.delegated_nodes,
                external_nodes=model.external_nodes,
                adapter=model.adapter,
                runtime=_runtime(model.runtime),
                arena_bytes=model.arena_bytes,
                total_nodes=model.total_nodes,
                operators=model.operators,
                request_crc32=message_crc32(request),
            )
            set_seal(reply)
            return reply

    def Infer(  # noqa: N802
        self, request: agent_pb2.InferRequest, context: grpc.ServicerContext
    ) -> agent_pb2.InferReply:
        """Run one batch."""
        with _statuses(context):
            return self._infer(request, _lease_of(context))

    def InferStream(  # noqa: N802
        self,
        request_iterator: Iterator[agent_pb2.InferRequest],
        context: grpc.ServicerContext,
    ) -> Iterator[agent_pb2.InferReply]:
        """Run batches as they arrive, and answer them in order.

        gRPC's own threads receive and send meanwhile. A thread of ours that reads ahead was
        measured to cost more than it saves.
        """
        with _statuses(context):
            lease = _lease_of(context)
            for request in request_iterator:
                yield self._infer(request, lease)

    def Capture(  # noqa: N802
        self, request: agent_pb2.CaptureRequest, context: grpc.ServicerContext
    ) -> Iterator[agent_pb2.CaptureReply]:
        """Run one input, and send its outputs in chunks, however large they are."""
        with _statuses(context):
            lease = _lease_of(context)
            number = self._lease.admit(lease)
            checksum = crc32(request.payload)
            if checksum != request.payload_crc32:
                raise Corrupted("the payload does not match its checksum")
            check_capture(self._sessions.model(request.session_id))
            batch = self._sessions.run(request.session_id, request.payload, 1)
            self._lease.admit(lease)
            first = agent_pb2.CaptureReply(
                payload_crc32=checksum,
                outputs_crc32=crc32(batch.outputs),
                size_bytes=len(batch.outputs),
                failures=_failures(batch.failures),
                busy_seconds=batch.busy_seconds,
                lease_number=number,
            )
            set_seal(first)
            yield first
            for start in range(0, len(batch.outputs), CHUNK_BYTES):
                yield agent_pb2.CaptureReply(chunk=batch.outputs[start : start + CHUNK_BYTES])

    def Telemetry(  # noqa: N802
        self, request: agent_pb2.TelemetryRequest, context: grpc.ServicerContext
    ) -> agent_pb2.TelemetryReply:
        """Say how the device is right now."""
        with _statuses(context):
            asked = request.session_id
            idle_seconds = self._sessions.idle_seconds(asked) if asked else None
            reply = agent_pb2.TelemetryReply(
                temperatures_celsius=_readings(machine.temperatures(self._system_root)),
                frequencies_mhz=_readings(machine.frequencies(self._system_root)),
                agent_rss_bytes=machine.resident_bytes(os.getpid()),
                worker_rss_bytes=map(machine.resident_bytes, self._sessions.worker_pids()),
                worker_restarts=self._sessions.restarts(),
                quarantined_inputs=self._sessions.quarantined(),
                store_bytes=self._store.used_bytes(),
                uptime_seconds=time.monotonic() - self._began,
                idle_seconds=idle_seconds,
            )
            set_seal(reply)
            return reply

    def CloseSession(  # noqa: N802
        self, request: agent_pb2.CloseSessionRequest, context: grpc.ServicerContext
    ) -> agent_pb2.CloseSessionReply:
        """End a session."""
        with _statuses(context):
            self._sessions.close(request.session_id)
            return agent_pb2.CloseSessionReply()

    def AcquireLease(  # noqa: N802
        self, request: agent_pb2.AcquireLeaseRequest, context: grpc.ServicerContext
    ) -> agent_pb2.AcquireLeaseReply:
        """Give the device to a host, or say which other host has it."""
        with _statuses(context):
            check_lease_request(request)
            lease = self._lease.acquire(request.holder, request.secret, request.former_secret)
            reply = agent_pb2.AcquireLeaseReply(remaining_seconds=lease.seconds)
            if not isinstance(lease, Grant):
                reply.in_use_by.CopyFrom(lease.holder)
                if lease.told_by is not None:
                    reply.told_by.CopyFrom(lease.told_by)
            else:
                reply.lease_number = lease.number
                if lease.continues:
                    self._sessions.note_new_connection()
                else:  # what others left open takes memory, and may compute
                    self._sessions.close_all()
            set_seal(reply)
            return reply

    def RenewLease(  # noqa: N802
        self,
        request: agent_pb2.RenewLeaseRequest,  # noqa: ARG002
        context: grpc.ServicerContext,
    ) -> agent_pb2.RenewLeaseReply:
        """Let a host keep the device."""
        with _statuses(context):
            if not self._lease.admit(_lease_of(context)):
                raise NotLeased("there is no lease to be renewed")
            reply = agent_pb2.RenewLeaseReply(remaining_seconds=self._lease.seconds)
            set_seal(reply)
            return reply

    def ReleaseLease(  # noqa: N802
        self,
        request: agent_pb2.ReleaseLeaseRequest,  # noqa: ARG002
        context: grpc.ServicerContext,
    ) -> agent_pb2.ReleaseLeaseReply:
        """Take the device back from a host."""
        with _statuses(context):
            self._lease.release(_lease_of(context))
            return agent_pb2.ReleaseLeaseReply()

    def _admitted(
        self, requests: Iterator[agent_pb2.UploadModelRequest], lease: str | None
    ) -> Iterator[agent_pb2.UploadModelRequest]:
        """Hold each part of an upload to its lease; one may take many times as long as that."""
        self._lease.admit(lease)
        for request in requests:
            self._lease.admit(lease)
            yield request

    def _description(self) -> agent_pb2.DescribeReply:
        device = self._machine
        reply = agent_pb2.DescribeReply(
            protocol=agent_pb2.ProtocolVersion(major=PROTOCOL_MAJOR, minor=PROTOCOL_MINOR),
            agent_version=__version__,
            runtime=agent_pb2.Runtime(name=self._runtime.name, version=self._runtime.version),
            machine=device.machine,
            soc=device.soc,
            cpu_features=device.cpu_features,
            os=device.os,
            cores=device.cores,
            governor=machine.governor(self._system_root),
            kernel_sets=self._kernel_sets,
            store_limit_bytes=self._store.limit_bytes,
            payload_limit_bytes=PAYLOAD_LIMIT_BYTES,
            python_version=device.python_version,
        )
        set_seal(reply)
        return reply

    def _infer(self, request: agent_pb2.InferRequest, lease: str | None) -> agent_pb2.InferReply:
        number = self._lease.admit(lease)
        payload = request.payload
        checksum = crc32(payload)
        if checksum != request.payload_crc32:
            raise Corrupted("the payload does not match its checksum")
        check_batch(self._sessions.model(request.session_id), request)
        batch = self._sessions.run(request.session_id, payload, request.count)
        self._lease.admit(lease)  # a batch may take longer than a lease
        reply = agent_pb2.InferReply(
            request_id=request.request_id,
            payload_crc32=checksum,
            outputs=batch.outputs,
            outputs_crc32=crc32(batch.outputs),
            failures=_failures(batch.failures),
            busy_seconds=batch.busy_seconds,
            lease_number=number,
        )
        set_seal(reply)
        return reply


_TRACEBACKS = Tracebacks()


@contextlib.contextmanager
def _statuses(context: grpc.ServicerContext) -> Iterator[None]:
    """Answer our own errors by the status that agent.proto promises, and all others by INTERNAL."""
    try:
        yield
    except tuple(_STATUSES) as error:
        status = next(code for kind, code in _STATUSES.items() if isinstance(error, kind))
        context.abort(status, str(error))
    except grpc.RpcError:
        raise  # the host is gone
    except Exception as error:
        words = " ".join(str(error).split())
        place = _TRACEBACKS.keep(error)
        context.abort(
            grpc.StatusCode.INTERNAL,
            f"unexpected {type(error).__name__}: {words}; the traceback is in {place} there",
        )


def _lease_of(context: grpc.ServicerContext) -> str | None:
    """Return the lease that a call has."""
    for key, value in context.invocation_metadata():
        if key == LEASE and isinstance(value, str):
            return value
    return None


def _failures(failures: Iterable[Failure]) -> Iterator[agent_pb2.InputFailure]:
    """Yield what a message says of failures, with their details as long as there is room."""
    room = FAILURE_TEXT_BYTES
    for failure in failures:
        room -= len(failure.detail.encode())
        yield agent_pb2.InputFailure(
            index=failure.index,
            kind=_KINDS[failure.kind],
            detail=failure.detail if room >= 0 else "",
            quarantined=failure.quarantined,
        )


def _runtime(named: str) -> agent_pb2.Runtime:
    name, _, version = named.partition(" ")
    return agent_pb2.Runtime(name=name, version=version)


def _tensor(spec: TensorSpec) -> agent_pb2.TensorSpec:
    return agent_pb2.TensorSpec(
        name=spec.name,
        shape=spec.shape,
        dtype=spec.dtype,
        scale=spec.scale,
        zero_point=spec.zero_point,
        index=spec.index,
    )


def _readings(values: dict[str, float]) -> list[agent_pb2.TelemetryReply.Reading]:
    return [agent_pb2.TelemetryReply.Reading(name=name, value=v) for name, v in values.items()]
