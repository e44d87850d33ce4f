"""What the agents of one device share, of all its users: the one that has it may give a lease."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

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
