"""A fork server as seen from its parent: workers asked of it, and what becomes of them.

It is not that of `multiprocessing`, which takes no launcher but an executable's path, runs the
parent's main module in each process, and has one server for all: a bundle starts Python by its own
loader, and the planted faults of the tests are launchers.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from struct import Struct

STATUS = Struct("<i")
"""What a server writes to the status pipe of a worker, twice."""

_START_SECONDS = 180.0
"""Time from the start of a server to its first worker: what a worker has that is started by
itself."""

_LOOK_SECONDS = 0.05
"""How often to look for the end of a process whose server is lost."""

_UNTOLD_SECONDS = 5.0
"""Time in which a server that runs tells of a process that has ended: thousandths of a second."""


class ForkedProcess:
    """A process that a server has forked; has what is used of `subprocess.Popen`.

    Attributes:
        pid: process id.
        returncode: exit code or minus the signal, None while it runs; where its server was killed
            or stands still, so that nobody knows, SIGKILL.

    """

    def __init__(self, pid: int, status_pipe: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._status_pipe = status_pipe
        self._lock = threading.Lock()
        self._gone_since: float | None = None

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        return self._look(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code.

        Raises:
            TimeoutExpired: it runs for longer than that.

        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self._look(_LOOK_SECONDS)) is None:
            if deadline is not None and time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return code

    def _look(self, seconds: float) -> int | None:
        with self._lock:
            if self.returncode is None:
                self.returncode = self._told(seconds)
                if self.returncode is not None:
                    os.close(self._status_pipe)
            return self.returncode

    def _told(self, seconds: float) -> int | None:
        """Return what the server tells, or what is known without it; None if it runs by then."""
        if _readable(self._status_pipe, seconds):
            if told := os.read(self._status_pipe, STATUS.size):
                code: int = STATUS.unpack(told)[0]
                return code
            if not _runs(self.pid):
                return -signal.SIGKILL
            time.sleep(seconds)
        elif seconds and not _runs(self.pid):
            now = time.monotonic()
            self._gone_since = self._gone_since or now
            if now - self._gone_since > _UNTOLD_SECONDS:
                return -signal.SIGKILL
        return None


class ForkServer:
    """A fork server that another process has started, and handed on.

    Attributes:
        surroundings: environment and folder of this process.
        forked: whether it has ever forked a worker, or may have done so for another process.

    """

    def __init__(self, requests: socket.socket, *, forked: bool) -> None:
        """Take a server.

        Args:
            requests: a socket to ask it by, which others may use, too.
            forked: whether it has ever forked one.

        """
        self.surroundings = surroundings()
        self.forked = forked
        self.socket = requests

    def fork(self, descriptors: Sequence[int]) -> ForkedProcess | None:
        """Return a new worker, None if the server is gone or does not answer.

        Args:
            descriptors: descriptors of its stdin, stdout, stderr and shared file.

        """
        status_pipe, told = os.pipe()
        try:
            socket.send_fds(self.socket, [b"f"], [*descriptors, told])
        except OSError:
            os.close(told)
            os.close(status_pipe)
            return None
        os.close(told)
        # The last end of the pipe is the server's, so its death is the end of the pipe.
        answer = (
            os.read(status_pipe, STATUS.size) if _readable(status_pipe, _START_SECONDS) else b""
        )
        if len(answer) == STATUS.size:
            return ForkedProcess(STATUS.unpack(answer)[0], status_pipe)
        os.close(status_pipe)
        return None

    def retire(self) -> None:
        """Ask for no more workers: the server ends with the last one that anybody has."""
        self.socket.close()

    def kill(self) -> None:
        """Let go of the server, which others may go on to use."""
        self.socket.close()


class ForkServerProcess(ForkServer):
    """A fork server that this process has started."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start a server.

        Args:
            command: what starts it, but for the number of its socket.

        Raises:
            OSError: it cannot be started.

        """
        ours, theirs = socket.socketpair()
        super().__init__(ours, forked=False)
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [*command, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    # Fewer threads, which a process that forks should not have. Workers need none.
                    env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                    start_new_session=True,
                )
            except OSError:
                ours.close()
                raise

    def kill(self) -> None:
        """Kill the server, but not its workers, if it still runs."""
        super().kill()
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def surroundings() -> tuple[dict[str, str], int, int]:
    """Return environment and folder of this process, which may have no path any more."""
    folder = os.stat(".")
    return dict(os.environ), folder.st_dev, folder.st_ino


def _readable(descriptor: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _runs(pid: int) -> bool:
    """Return whether a process runs; where it ends as nobody's child, nobody may reap it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
