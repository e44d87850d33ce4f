"""What the agents of one device share, of all its users: the one that has it may give a lease."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import socket
import sys
import threading
import time
from collections.abc import Callable

# One that is about to give it up does so within milliseconds.
_ATTEMPTS = 20
_PAUSE_SECONDS = 0.02

# For what another agent has ready; one that is stopped does not answer, and has it all the same.
_ANSWER_SECONDS = 1.0

_MOST_BYTES = 4096


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

    def take(self, tell: Callable[[], bytes]) -> bytes | None:
        """Take the lock; return None, or what the program says that has it.

        Args:
            tell: returns what other agents are told from now on; nothing where the lock is being
                given up.

        """
        if sys.platform != "linux":
            return None
        for _ in range(_ATTEMPTS):
            if self._bind(tell):
                return None
            told = self._ask()
            if told is not None:
                return told
            time.sleep(_PAUSE_SECONDS)
        return b""

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
            target=_answer, args=(listener, tell), name="device lock", daemon=True
        ).start()
        return True

    def _ask(self) -> bytes | None:
        """Return what the program says that has the lock; None if it is giving it up."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
            caller.settimeout(_ANSWER_SECONDS)
            try:
                caller.connect(self._address)
                told = b""
                while len(told) < _MOST_BYTES and (part := caller.recv(_MOST_BYTES)):
                    told += part
            except (ConnectionRefusedError, ConnectionResetError):
                return None
            except OSError:
                return b""
        return told or None


def _answer(listener: socket.socket, tell: Callable[[], bytes]) -> None:
    while True:
        try:
            caller, _ = listener.accept()
        except OSError:
            return  # the lock was given back
        with caller, contextlib.suppress(OSError):
            caller.settimeout(_ANSWER_SECONDS)
            caller.sendall(tell())
