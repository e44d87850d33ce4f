"""What a host has of a device's lease: taken from the agent, renewed, and given back.

The secret of a lease is the host's choice, and the same for all its leases of a device: a request
whose answer was lost is made again, and gets the same lease. The host never declares its lease lost
by its clock: it only takes no answer without asking the agent first. So renewals that are
stuck behind a large model on a slow link cost nothing.
"""

from __future__ import annotations

import getpass
import math
import os
import platform
import re
import secrets
import sys
import threading
import time
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from edgeflare.devices.connection import Connection, DeviceLost
from edgeflare.devices.lease import LocalLease
from edgeflare.errors import EdgeFlareError, InfrastructureError, UserError
from edgeflare.untrusted_text import printable
from edgeflare_protos import agent_pb2 as wire
from edgeflare_protos import set_seal
from edgeflare_protos.lease_words import holder_words
from edgeflare_protos.limits import (
    LEAST_LEASE_SECONDS,
    MOST_HOLDER_CHARACTERS,
    MOST_LEASE_SECONDS,
)

RENEWALS = 3
"""Renewals in the time of one lease: two may be lost before the lease is."""

RETRIES = 10
"""Attempts in the time of one lease after a renewal that did not get through."""

NAME_EACH = "start each agent with a name of its own, by its --device or a profile's agent_device"
"""What to do where the agents of several devices of one machine share a lease."""

_HELD: set[AgentLease] = set()
"""The leases of this process, of all its devices, that it has or is asking for."""


class DeviceInUse(InfrastructureError):  # noqa: N818 - what happened
    """Another host has the device; trying again before it has ended would not help."""


class AgentLease:
    """The right to use a device, renewed by a thread of its own until it is given back.

    The agent decides whether it still holds, by its own clock. What this host knows of that is as
    old as its last renewal, so an answer that arrives later than the lease lasts from then on is
    not taken before the agent has confirmed that the lease never ended.
    """

    def __init__(self) -> None:
        """Prepare; nothing is asked for yet."""
        self._secret = secrets.token_urlsafe(16)
        self._number = 0
        self._connection: Connection | None = None
        self._local: LocalLease | None = None
        self._good_until = -math.inf
        self._renewing = threading.Lock()
        self._suspended = threading.Event()
        self._thread: threading.Thread | None = None

    def acquire(self, connection: Connection, local: LocalLease | None) -> None:
        """Take the lease, or go on with it over another connection.

        Args:
            connection: connection to the agent, after the handshake.
            local: the device among the processes of this host; None where nothing keeps that.

        Raises:
            DeviceInUse: see there.
            UserError: this process has it as another of its devices.

        """
        request = wire.AcquireLeaseRequest(
            holder=_own_words(),
            secret=self._secret,
            former_secret=local.former_secret if local else "",
        )
        set_seal(request)
        if local is not None:
            # Before the agent is asked: where its answer is lost, the lease is this process's all
            # the same, and the next one need not wait for it to end.
            local.keep(self._secret)
        asked = _now()
        _HELD.add(self)
        try:
            reply = connection.acquire_lease(request)
            if not reply.lease_number:
                raise self._refusal(connection, reply, request.holder)
        except EdgeFlareError:
            _HELD.discard(self)
            raise
        seconds = _of_a_lease(reply.remaining_seconds)
        self._number, self._good_until = reply.lease_number, asked + seconds
        self._connection, self._local = connection, local
        connection.carry_lease(reply.lease_number, self._secret, self._confirm)
        self._suspended = threading.Event()
        self._thread = threading.Thread(
            target=self._keep_renewing,
            args=(connection, seconds, self._suspended),
            name=f"{connection.name} lease",
            daemon=True,
        )
        self._thread.start()

    def suspend(self) -> None:
        """Renew the lease no longer, but do not give it back. Suspending twice is no error.

        It waits for a renewal that is under way, which ends at once when its connection is closed.
        """
        self._suspended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def release(self) -> None:
        """Give the lease back, if the agent can be reached. Releasing twice is no error."""
        self._suspended.set()
        _HELD.discard(self)
        connection, self._connection = self._connection, None
        if connection is None or _now() >= self._good_until:
            return  # without renewals it ends by itself
        with suppress(InfrastructureError):
            connection.release_lease()
            if self._local is not None:
                self._local.forget()

    def _confirm(self) -> None:
        """See to it that the lease has not ended."""
        connection = self._connection
        if connection is None or _now() < self._good_until:
            return
        try:
            self._renew(connection)
        except InfrastructureError as error:
            raise DeviceLost(str(error)) from None

    def _renew(self, connection: Connection) -> None:
        with self._renewing:
            asked = _now()
            self._good_until = asked + _of_a_lease(connection.renew_lease())

    def _keep_renewing(
        self, connection: Connection, seconds: float, suspended: threading.Event
    ) -> None:
        pause = seconds / RENEWALS
        while not suspended.wait(pause):
            try:
                self._renew(connection)
                pause = seconds / RENEWALS
            except InfrastructureError:  # which whoever waits for an answer will learn
                pause = seconds / RETRIES

    def _refusal(
        self, connection: Connection, reply: wire.AcquireLeaseReply, own: wire.LeaseHolder
    ) -> EdgeFlareError:
        holder = reply.in_use_by
        # Another container may have the same names and numbers, and waiting for that one would do.
        if (holder.user, holder.pid) == (own.user, own.pid) and _HELD - {self}:
            return UserError(f"{connection.place}: {_ONE_DEVICE[reply.HasField('told_by')]}")
        left = timedelta(seconds=_clamped(reply.remaining_seconds, 0.0, MOST_LEASE_SECONDS))
        until = datetime.now().astimezone() + left
        lost = "the lease of this command has ended, and the device is now " if self._number else ""
        return DeviceInUse(
            f"{connection.place}: {lost}in use by {printable(holder_words(reply.in_use_by))} until"
            f" {until:%H:%M:%S} at least, and longer while that works: wait until it has ended, or"
            f" name another device{_teller(reply)}"
        )


_ONE_DEVICE = {
    False: "two of the devices named are the same one; name it once",
    True: (
        "its agent and that of another of the devices named stand for one device; name one of them"
        f" alone, or, where they are two devices of one machine, {NAME_EACH}"
    ),
}
"""What it means that this process has a device already, by whether another agent says so."""


def _teller(reply: wire.AcquireLeaseReply) -> str:
    """Return who says that a device is in use, where its agent knows that from another process."""
    if not reply.HasField("told_by"):
        return ""
    process = f"process {reply.told_by.pid}" if reply.told_by.pid else "a process"
    return (
        f"; so says {process} of the user {reply.told_by.uid} there; where that is the agent of"
        f" another device of that machine, {NAME_EACH}"
    )


def _of_a_lease(seconds: float) -> float:
    """Return what an agent says that a lease lasts, within the bounds of its option.

    Without them one that says nothing, or what is no number, would be asked without a pause.
    """
    return _clamped(seconds, LEAST_LEASE_SECONDS, MOST_LEASE_SECONDS)


def _clamped(seconds: float, least: float, most: float) -> float:
    return min(most, seconds) if seconds >= least else least  # also where it is no number


def _now() -> float:
    """Return seconds that go on while this host sleeps, as Python's own do not on Linux."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def _own_words() -> wire.LeaseHolder:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        user = str(os.getuid())
    return wire.LeaseHolder(
        user=_short(f"{user}@{platform.node()}"), pid=os.getpid(), command=_short(_command())
    )


def _command() -> str:
    """Return what runs, without arguments that may be private."""
    program = Path(sys.argv[0])
    name = program.parent.name if program.name == "__main__.py" else program.name
    if name == "edgeflare" and len(sys.argv) > 1 and re.fullmatch(r"[a-z][a-z-]*", sys.argv[1]):
        return f"edgeflare {sys.argv[1]}"
    return "python" if name in ("", "-", "-c") else name


def _short(text: str) -> str:
    return printable(text)[:MOST_HOLDER_CHARACTERS]
