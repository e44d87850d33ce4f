"""A device: its agent brought up, connected and known; opens models, and comes back when lost."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import FrameType, TracebackType

from edgeflare.devices.agent_lease import AgentLease, DeviceInUse
from edgeflare.devices.connection import Connection, DeviceLost
from edgeflare.devices.handshake import shake_hands
from edgeflare.devices.profile import Precision, Profile
from edgeflare.devices.provenance import (
    DEVICE_DECIDES,
    OPENED_MODEL_DECIDES,
    Provenance,
    Telemetry,
    decisive_changes,
)
from edgeflare.devices.reservations.reservation import reserved
from edgeflare.devices.session import DeviceProbe, DeviceSession
from edgeflare.devices.transports.transport import Transport
from edgeflare.devices.transports.transport_registry import cache_of, transport
from edgeflare.errors import EdgeFlareError, InfrastructureError
from edgeflare.models.evaluator import ONCE, Invocation
from edgeflare.signal_errors import ErrorOf, handled_errors, signal_errors
from edgeflare_protos import agent_pb2 as wire
from edgeflare_protos.kernel_sets import KERNEL_SETS, Kernels, accelerated

REOPEN_PAUSES_SECONDS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Seconds before each attempt to get a lost device back: at once, since an emulated one just starts
anew, then backing off for as long as it takes to put a cable in again, or a board to boot."""

SLICE_SECONDS = 0.2
"""Seconds of such a pause after which the user's wish to stop is looked at."""

MOST_REFUSALS = 3
"""Attempts in a row that may end in a refusal. A request that was damaged on its way is refused
like a wrong one; a device that refuses thrice means it."""


def connect(profile: Profile) -> Device:
    """Bring a device's agent up and shake hands with it.

    What the profile wants reserved is reserved before that, until the device is closed.

    Raises:
        DeviceInUse: another host has the device.
        InfrastructureError: the agent does not come up or is not there, does not let this host in,
            or speaks another version of the protocol.

    """
    plugin = transport(profile.transport)
    # A device that was started for this process alone has nobody to be kept from.
    lease = None if plugin.starts_device else AgentLease()
    with ExitStack() as reservation:
        reservation.enter_context(reserved(profile))
        device = Device(profile, plugin.create(profile), lease)
        device.hold(reservation.pop_all())
    return device


class Device:
    """A connected device. As a context manager it closes itself."""

    def __init__(
        self, profile: Profile, transport: Transport, lease: AgentLease | None = None
    ) -> None:
        self.profile = profile
        self._transport = transport
        self._lease = lease
        self._sessions: list[DeviceSession] = []
        self._held = ExitStack()
        self._open: ExitStack
        self._connection: Connection
        self._description: wire.DescribeReply
        self._connect()

    @property
    def provenance(self) -> Provenance:
        """What the device is; node counts are those of the session that was opened last."""
        known = _provenance(self.profile, self._description)
        if not self._sessions:
            return known
        session = self._sessions[-1]
        runtime, version = session.runtime
        return replace(
            known,
            runtime=runtime,
            runtime_version=version,
            delegated_nodes=session.delegated_nodes,
            total_nodes=session.total_nodes,
            external_nodes=session.external_nodes,
            adapter=session.adapter or None,
            arena_bytes=session.arena_bytes or None,
        )

    def open(self, model_path: str | PathLike[str], invocation: Invocation = ONCE) -> DeviceSession:
        """Open a model on the device, with the profile's kernels and threads.

        Args:
            model_path: the `.tflite` file.
            invocation: how the model is called: signature, fixed shapes, state and frames, if any.

        Raises:
            UserError: the file cannot be read, the device's runtime refuses it, or the invocation
                does not fit it.
            InfrastructureError: the device fails.

        """
        limit = self._description.payload_limit_bytes
        session = DeviceSession(self._connection, self.profile, Path(model_path), limit, invocation)
        # Of those that were closed, which are not brought back, each would keep its model.
        self._sessions = [*(known for known in self._sessions if not known.closed), session]
        return session

    def hold(self, reservation: ExitStack) -> None:
        """Close something once the device is closed, such as what reserves it."""
        self._held.push(reservation)

    @property
    def kernels(self) -> tuple[Kernels, ...]:
        """The kernel sets that the device has."""
        return tuple(k for k in KERNEL_SETS if k in self._description.kernel_sets)

    @property
    def payload_limit_bytes(self) -> int:
        """The most bytes that one message may carry."""
        return self._description.payload_limit_bytes

    @property
    def steps(self) -> bool:
        """Whether an open model takes other shapes, and other signatures, between invocations."""
        return KERNEL_SETS[self.profile.kernels].steps

    def open_as(
        self,
        model_path: Path,
        kernels: Kernels,
        threads: int,
        invocation: Invocation = ONCE,
        *,
        precision: Precision | None = None,
        fallback: bool | None = None,
    ) -> DeviceSession:
        """Open a model with other kernels or threads than the profile's, for a short while.

        `reopen` does not bring it back, and its node counts are no part of the provenance.

        Args:
            model_path: the `.tflite` file.
            kernels: the kernel set.
            threads: interpreter threads.
            invocation: how the model is called: signature, fixed shapes, state and frames, if any.
            precision: precision of an accelerator, "fp16" or "fp32"; None for the profile's.
            fallback: whether nodes that an accelerator does not take run on the CPU; None for what
                the profile says.

        """
        other = replace(
            self.profile.with_kernels(kernels),
            threads=threads,
            precision=self.profile.precision if precision is None else precision,
            fallback=self.profile.fallback if fallback is None else fallback,
        )
        limit = self._description.payload_limit_bytes
        return DeviceSession(self._connection, other, model_path, limit, invocation)

    def probe(self, content: bytes, *, capture: bool = False) -> DeviceProbe:
        """Open a model to look into it, with the profile's kernels and threads.

        Raises:
            ProbeRefused: the device's runtime refuses the model.

        """
        return DeviceProbe(self._connection, self.profile, content, capture=capture)

    def telemetry(self) -> Telemetry:
        """Ask for the state of the device right now.

        Raises:
            DeviceLost: it does not answer.

        """
        reply = self._connection.telemetry()
        return Telemetry(
            temperatures={reading.name: reading.value for reading in reply.temperatures_celsius},
            frequencies={reading.name: reading.value for reading in reply.frequencies_mhz},
            agent_rss_bytes=reply.agent_rss_bytes,
            worker_rss_bytes=tuple(reply.worker_rss_bytes),
            worker_restarts=reply.worker_restarts,
            quarantined_inputs=reply.quarantined_inputs,
            store_bytes=reply.store_bytes,
            uptime_seconds=reply.uptime_seconds,
        )

    def reopen(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Get a lost device back, and open again on it whatever was open.

        Its sessions are the same objects afterwards; what was under way on them has failed with
        DeviceLost and can be submitted again.

        Args:
            stopped: whether the user does not want to wait any longer.

        Raises:
            DeviceInUse: the lease of it has ended meanwhile, and another host has it.
            InfrastructureError: it does not come back, or comes back as another device, or the user
                does not want to wait for it.

        """
        before = self.provenance
        cause, last, refusals = "", "", 0
        for pause in REOPEN_PAUSES_SECONDS:
            self._wait(pause, stopped, cause)
            try:
                with _raise_on_stop(stopped):
                    for session in self._sessions:
                        session.suspend()
                    self._open.close()
                    cause = cause or self._transport.failure_reason()
                    self._connect()
                    for session in self._sessions:
                        session.resume(self._connection)
                break
            except _StopSignal:
                raise self._stopped(cause) from None
            except DeviceInUse:
                raise
            except EdgeFlareError as error:
                refusals = 0 if isinstance(error, DeviceLost) else refusals + 1
                if refusals == MOST_REFUSALS:
                    raise
                last = str(error)
        else:
            raise InfrastructureError(
                f"{self.profile.name}: lost{f' ({cause})' if cause else ''}, and not back after"
                f" {len(REOPEN_PAUSES_SECONDS)} attempts; at last: {last}"
            )
        require_same_device(before, self.provenance)

    def close(self) -> None:
        """Close the sessions and the connection, and take the agent down if we brought it up.

        Closing twice is no error.
        """
        with self._held.pop_all(), self._open:
            for session in self._sessions:
                session.close()
            if self._lease is not None:
                self._lease.release()

    def __enter__(self) -> Device:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _connect(self) -> None:
        with ExitStack() as stack:
            endpoint = stack.enter_context(self._transport)
            delay_seconds = self.profile.link_delay_seconds
            connection = Connection(
                self.profile.name,
                endpoint,
                delay_seconds,
                connect_seconds=self.profile.connect_timeout_seconds,
                upload_seconds=self.profile.upload_timeout_seconds,
            )
            if self._lease is not None:
                stack.callback(self._lease.suspend)
            stack.callback(connection.close)
            self._description = shake_hands(connection)
            if self._lease is not None:
                self._lease.acquire(connection, endpoint.local_lease)
            self._connection = connection
            self._open = stack.pop_all()

    def _wait(self, seconds: float, stopped: Callable[[], bool], cause: str) -> None:
        until = time.monotonic() + seconds
        while True:
            if stopped():
                raise self._stopped(cause)
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, SLICE_SECONDS))

    def _stopped(self, cause: str) -> InfrastructureError:
        return InfrastructureError(
            f"{self.profile.name}: lost{f' ({cause})' if cause else ''}, and stopped before it was"
            " back"
        )


def require_same_device(before: Provenance, after: Provenance) -> None:
    """Refuse a device that came back and whose answers could not be set beside the earlier ones.

    Raises:
        InfrastructureError: it differs in what decides answers.

    """
    keys = (*DEVICE_DECIDES, *OPENED_MODEL_DECIDES)
    found = decisive_changes(before, after, keys)
    changes = [f"{change.name} {change.one} is now {change.other}" for change in found]
    if changes:
        raise InfrastructureError(
            f"{before.name}: came back as another device ({'; '.join(changes)}); start a new run"
        )


def _provenance(profile: Profile, description: wire.DescribeReply) -> Provenance:
    protocol = description.protocol
    return Provenance(
        name=profile.name,
        transport=profile.transport,
        machine=description.machine,
        soc=description.soc,
        cpu_features=tuple(description.cpu_features),
        os=description.os,
        cores=description.cores,
        governor=description.governor,
        python=description.python_version,
        runtime=description.runtime.name,
        runtime_version=description.runtime.version,
        kernels=profile.kernels,
        threads=profile.threads,
        link_delay_seconds=profile.link_delay_seconds,
        agent_version=description.agent_version,
        protocol=f"{protocol.major}.{protocol.minor}",
        delegate=profile.delegate,
        precision=profile.precision if accelerated(profile.kernels) else None,
        fallback=profile.fallback if accelerated(profile.kernels) else None,
        cache=cache_of(profile),
    )


class _StopSignal(KeyboardInterrupt):
    """A signal after which the user does not want to wait any longer."""


@contextmanager
def _raise_on_stop(stopped: Callable[[], bool]) -> Iterator[None]:
    """Raise `_StopSignal` out of what runs in the context once a signal has made `stopped` true.

    It is raised once, so that what then cleans up is not cut short. Other threads than the main one
    receive no signals; there nothing is raised.

    Args:
        stopped: whether the user wants to stop; asked after the handlers of SIGINT and SIGTERM that
            are there already.

    """
    raised = False

    def stopping(error_of: ErrorOf) -> ErrorOf:
        def error(frame: FrameType | None) -> BaseException | None:
            nonlocal raised
            if (other := error_of(frame)) is not None or raised or not stopped():
                return other
            raised = True
            return _StopSignal()

        return error

    errors = handled_errors(signal.SIGINT, signal.SIGTERM)
    with signal_errors({number: stopping(error_of) for number, error_of in errors.items()}):
        yield
