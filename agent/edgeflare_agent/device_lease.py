"""The lease of a device: one host has it at a time, and one whose lease has ended is told so.

Agents of one device, of whatever users, share a lock; the one that has it may give the lease.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import hmac
import math
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from edgeflare_protos import agent_pb2
from edgeflare_protos.lease_words import holder_words, lease_token
from edgeflare_protos.limits import MOST_HOLDER_CHARACTERS

LEASE_SECONDS = 30
"""Time until a lease ends that is not renewed. A host renews it every third of that, so that two
renewals may fail; a link that is away for longer, or a host, keeps nobody from the device."""


class NotLeased(Exception):  # noqa: N818
    """A call's lease is not the current one, or it has none while another host has one."""


@dataclass(frozen=True)
class Grant:
    """A lease that was given.

    Attributes:
        number: grows with each.
        seconds: until it ends, unless it is renewed.
        continues: whether the host had the last one too, so that what it opened is still its own.

    """

    number: int
    seconds: float
    continues: bool


@dataclass(frozen=True)
class Taken:
    """A lease that another host has.

    Attributes:
        holder: the host that has it.
        seconds: until the lease ends, unless it is renewed.
        told_by: the process of the device that says so; None for this agent itself.

    """

    holder: agent_pb2.LeaseHolder
    seconds: float
    told_by: agent_pb2.DeviceProcess | None = None


@dataclass
class _Held:
    number: int
    secret: str
    holder: agent_pb2.LeaseHolder
    ends: float


class DeviceLease:
    """Gives a device to one host at a time. Safe with several threads.

    A lease ends when it is given back, when it was not renewed in time, or when a host shows that
    it may take it over. Its number fences: calls that still come under an earlier one are refused,
    also where the same host has a later one.

    Args:
        seconds: of a lease that is not renewed.
        device: what all agents of this device share.
        clock: seconds that only grow.

    """

    def __init__(
        self,
        seconds: float,
        device: DeviceLock,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.seconds = seconds
        self._device = device
        self._clock = clock
        self._lock = threading.Lock()
        # Held while other agents are asked, which may take seconds; calls need the other one alone.
        self._asking = threading.Lock()
        self._number = 0
        self._held: _Held | None = None
        self._last_secret = ""

    def acquire(
        self, holder: agent_pb2.LeaseHolder, secret: str, former_secret: str = ""
    ) -> Grant | Taken:
        """Give the lease to a host, renew the one that it has, or say who else has it.

        Args:
            holder: the host, in words.
            secret: secret by which the host is known again.
            former_secret: secret of a lease that ends if it is the current one; empty for none.

        """
        outcome = self._of_this_agent(holder, secret, former_secret)
        if outcome is not None:
            return outcome
        if not self._asking.acquire(timeout=TAKE_SECONDS):
            # Several hosts ask for a device whose other agent does not answer: one thread waits.
            return Taken(agent_pb2.LeaseHolder(), 0.0)
        try:
            outcome = self._of_this_agent(holder, secret, former_secret)
            if outcome is not None:
                return outcome  # meanwhile
            owner = self._device.take(self._told)
            if owner is not None:
                # Whoever runs on the device may say anything.
                try:
                    reply = agent_pb2.AcquireLeaseReply.FromString(owner.told)
                    check_holder(reply.in_use_by)
                except (DecodeError, ValueError):
                    reply = agent_pb2.AcquireLeaseReply()
                seconds = (
                    reply.remaining_seconds if 0 <= reply.remaining_seconds < math.inf else 0.0
                )
                told_by = agent_pb2.DeviceProcess(uid=owner.uid, pid=owner.pid)
                return Taken(reply.in_use_by, seconds, told_by)
            with self._lock:
                return self._give(holder, secret)
        finally:
            self._asking.release()

    def admit(self, token: str | None) -> int:
        """Let a call use the device, which renews its lease; return the lease's number, or 0.

        Args:
            token: the lease as the call has it, see `lease_token`; None if it has none.

        Raises:
            NotLeased: see there.

        """
        with self._lock:
            held = self._living()
            if held is None and token is None:
                return 0
            if held is None:
                raise NotLeased("the lease of this call has ended")
            if token is not None and _same(lease_token(held.number, held.secret), token):
                held.ends = self._clock() + self.seconds
                return held.number
            lost = "" if token is None else "the lease of this call has ended, and "
            left = math.ceil(held.ends - self._clock())
            raise NotLeased(
                f"{lost}the device is in use by {holder_words(held.holder)} for {left} s more at"
                " least, and longer while that works"
            )

    def release(self, token: str | None) -> None:
        """End a lease; if it has ended already, nothing changes."""
        with self._lock:
            held = self._living()
            if held and token and _same(lease_token(held.number, held.secret), token):
                self._end()

    def _of_this_agent(
        self, holder: agent_pb2.LeaseHolder, secret: str, former_secret: str
    ) -> Grant | Taken | None:
        """Answer where this agent has given the lease; None if it would have to take the device."""
        with self._lock:
            held = self._living()
            if held is None:
                return None
            if _same(held.secret, secret):
                held.ends = self._clock() + self.seconds
                return Grant(held.number, self.seconds, continues=True)
            if former_secret and _same(held.secret, former_secret):
                return self._give(holder, secret)
            return Taken(held.holder, held.ends - self._clock())

    def _give(self, holder: agent_pb2.LeaseHolder, secret: str) -> Grant:
        self._number += 1
        self._held = _Held(self._number, secret, holder, self._clock() + self.seconds)
        continues = _same(self._last_secret, secret)
        self._last_secret = secret
        return Grant(self._number, self.seconds, continues)

    def _living(self) -> _Held | None:
        if self._held is not None and self._clock() >= self._held.ends:
            self._end()
        return self._held

    def _end(self) -> None:
        self._held = None
        self._device.drop()

    def _told(self) -> bytes:
        """Return what another agent of the device is told; nothing if nobody has a lease."""
        with self._lock:
            held = self._living()
            if held is None:
                return b""
            left = held.ends - self._clock()
            told = agent_pb2.AcquireLeaseReply(in_use_by=held.holder, remaining_seconds=left)
            return told.SerializeToString()


def check_holder(holder: agent_pb2.LeaseHolder) -> None:
    """Refuse, by a ValueError, what could not be shown in a line."""
    for name, text in (("user", holder.user), ("command", holder.command)):
        if len(text) > MOST_HOLDER_CHARACTERS or not text.isprintable():
            raise ValueError(
                f"the {name} of a lease must be at most {MOST_HOLDER_CHARACTERS} characters that"
                " print"
            )


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


TAKE_SECONDS = 2.0
"""Time for all that is done to take the lock. An agent has its answer ready, and one that is about
to give the lock up does so within milliseconds; one that is stopped, and whatever else does not
answer, has it all the same. A host waits for five times as long."""

_PAUSE_SECONDS = 0.02

# For a caller to take an answer that fits its buffers.
_TELL_SECONDS = 1.0

_MOST_BYTES = 4096

# Linux's `struct ucred`: process, user and group.
_CREDENTIALS = "iII"


@dataclass(frozen=True)
class LockOwner:
    """A program that has a lock.

    Attributes:
        told: what it says; nothing where it says nothing in time.
        uid: user of the program, as the system knows that, whatever the program says; None where it
            does not.
        pid: process id, likewise.

    """

    told: bytes = b""
    uid: int | None = None
    pid: int | None = None


class DeviceLock:
    """A lock of the machine, whose holder says what it is used for.

    It is a socket in Linux's abstract namespace, and not a file: agents of several users, in
    services with a /tmp of their own, have no folder in common; nobody clears it away; and the
    kernel takes it back however its agent ends. Containers with networks of their own do not share
    it, nor do agents on systems without such sockets.

    Args:
        name: agents of one name share it.

    """

    def __init__(self, name: str) -> None:
        # Of any length and characters; an address has 108 bytes.
        self._address = f"\0edgeflare-agent/{hashlib.sha256(os.fsencode(name)).hexdigest()}"
        self._listener: socket.socket | None = None

    def take(self, tell: Callable[[], bytes]) -> LockOwner | None:
        """Take the lock; return None, or the program that has it.

        For one thread at a time; it takes no longer than TAKE_SECONDS.

        Args:
            tell: returns what other agents are told from now on; nothing where the lock is being
                given up.

        """
        if sys.platform != "linux":
            return None
        deadline = time.monotonic() + TAKE_SECONDS
        owner = LockOwner()
        while (left := deadline - time.monotonic()) > 0:
            if self._bind(tell):
                return None
            owner = self._ask(deadline) or owner
            if owner.told:
                break
            time.sleep(min(_PAUSE_SECONDS, left))  # it is being given up
        return owner

    def drop(self) -> None:
        """Give the lock back; if it is not taken, nothing changes."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that listens
            listener.close()

    def _bind(self, tell: Callable[[], bytes]) -> bool:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(self._address)
            listener.listen()
        except OSError as error:
            listener.close()
            # Else this system has no such sockets, or forbids them.
            return error.errno != errno.EADDRINUSE
        self._listener = listener
        threading.Thread(
            target=self._answer, args=(listener, tell), name="device lock", daemon=True
        ).start()
        return True

    def _answer(self, listener: socket.socket, tell: Callable[[], bytes]) -> None:
        while True:
            try:
                caller, _ = listener.accept()
            except OSError:
                if self._listener is not listener:
                    return  # the lock was given back
                # The process may have no file descriptor to spare, for now.
                time.sleep(_PAUSE_SECONDS)
                continue
            with caller, contextlib.suppress(OSError):
                caller.settimeout(_TELL_SECONDS)
                caller.sendall(tell())

    def _ask(self, deadline: float) -> LockOwner | None:
        """Return the program that has the lock; None if none does any longer.

        A program that is none of ours may let each byte wait, so the deadline is one for them all.
        """
        told, uid, pid = b"", None, None
        with (
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller,
            contextlib.suppress(OSError),
        ):
            caller.settimeout(max(_PAUSE_SECONDS, deadline - time.monotonic()))
            try:
                caller.connect(self._address)
            except (ConnectionRefusedError, ConnectionResetError):
                return None
            # The process and the user that listen at the other end, as the kernel noted them.
            size = struct.calcsize(_CREDENTIALS)
            credentials = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
            pid, uid, _ = struct.unpack(_CREDENTIALS, credentials)
            while len(told) < _MOST_BYTES and (left := deadline - time.monotonic()) > 0:
                caller.settimeout(left)
                part = caller.recv(_MOST_BYTES)
                if not part:
                    break
                told += part
        return LockOwner(told, uid, pid)
