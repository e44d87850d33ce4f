"""Messages between a worker and its parent: one line of JSON each, over two pipes.

Inputs and outputs go through `shared_memory`; these messages have a few dozen bytes for a batch.
"""

from __future__ import annotations

import json
import os
import select
from typing import Any


class Channel:
    """One end of the two pipes. Not for several threads at once."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._received = b""
        # poll, since select fails on descriptors from 1,024 on.
        self._poll = select.poll()
        self._poll.register(read_fd, select.POLLIN)

    def send(self, message: dict[str, Any]) -> None:
        """Send a message.

        Raises:
            OSError: the other end is gone.

        """
        line = json.dumps(message).encode() + b"\n"
        while line:
            line = line[os.write(self._write_fd, line) :]

    def receive(self, timeout_seconds: float | None = None) -> dict[str, Any] | None:
        """Return the next message, or None if nothing came for `timeout_seconds`.

        Raises:
            EOFError: the other end is gone.

        """
        while b"\n" not in self._received:
            milliseconds = None if timeout_seconds is None else max(0.0, timeout_seconds) * 1000
            if not self._poll.poll(milliseconds):
                return None
            arrived = os.read(self._read_fd, 65536)
            if not arrived:
                raise EOFError
            self._received += arrived
        line, self._received = self._received.split(b"\n", 1)
        message: dict[str, Any] = json.loads(line)
        return message
