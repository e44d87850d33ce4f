"""An agent as a child process of the host: started, waited for, listened to, ended."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from edgeflare.devices.connection import DeviceLost
from edgeflare.devices.profile import Profile
from edgeflare.devices.transports.first_words import read_until
from edgeflare.devices.transports.scratch import ScratchFolder
from edgeflare.devices.transports.transport import Endpoint, Transport
from edgeflare.errors import InfrastructureError
from edgeflare.outside_text import json_value

READY_SECONDS = 60.0
"""Seconds from start to the ready line. A cold start takes about 1 s, 4 s under QEMU, and ten times
that when CI is loaded."""

STOP_SECONDS = 5.0
"""Seconds from closed stdin to the end of the process. It has workers to end: milliseconds."""


class ChildAgent:
    """One agent process that ends with this one.

    It has a session of its own, so that a Ctrl-C at the terminal reaches the host alone, which
    then ends its run in order. All that it writes lies in one temporary folder: its model store,
    its log, its token (the port is on loopback, but other users live there too).

    Attributes:
        folder: temporary folder in which the process runs.

    """

    def __init__(self, name: str, start_seconds: float | None = None) -> None:
        """Make the folder; nothing runs yet.

        Args:
            name: the device's name, for messages.
            start_seconds: time that the agent may take to start; None for READY_SECONDS.

        """
        self._name = name
        self._start_seconds = start_seconds or READY_SECONDS
        self._scratch = ScratchFolder()
        self._process: subprocess.Popen[bytes] | None = None
        self.folder = self._scratch.path

    def start(
        self,
        launcher: Sequence[str],
        environment: Mapping[str, str],
        fork_server: int | None = None,
    ) -> Endpoint:
        """Start the agent, and wait until it is ready.

        Args:
            launcher: the command that runs the agent, to which its options are added.
            environment: the process's whole environment.
            fork_server: socket of the fork server of this process, which the agent then uses, too.

        Raises:
            OSError: the launcher cannot be run.

        """
        token = secrets.token_urlsafe()
        (self.folder / "token").write_text(token, encoding="utf-8")
        # fmt: off
        command = [
            *launcher,
            "--host", "127.0.0.1", "--port", "0",
            "--store", str(self.folder / "store"),
            "--token-file", str(self.folder / "token"),
            "--exit-with-stdin",
            *([] if fork_server is None else ["--fork-server", str(fork_server)]),
        ]
        # fmt: on
        with open(self.folder / "log", "wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self.folder,  # not the user's, whose files `-m` would import as modules
                env=environment,
                pass_fds=() if fork_server is None else (fork_server,),
                start_new_session=True,
            )
        port = self._wait_until_ready(self._process)
        return Endpoint(f"127.0.0.1:{port}", token=token)

    def end(self) -> str:
        """End the process, with force where it must be, remove the folder; return last words."""
        words = ""
        if self._process is not None:
            process = self._process
            assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018
            process.stdin.close()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            process.stdout.close()
            words = self.failure_reason() if self._process.returncode else ""
            self._process = None
        self._scratch.remove()
        return words

    def failure_reason(self) -> str:
        """Return how the process ended and the last line of its log, if it did end."""
        code = None if self._process is None else self._process.poll()
        return "" if code is None else f"its process {_ending(code)}{self._last_line()}"

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> int:
        """Read the line that says on which port the agent listens."""
        assert process.stdout is not None  # noqa: S101 - for the type checker
        try:
            line = read_until(b"\n", process.stdout.fileno(), self._start_seconds)
        except TimeoutError:
            raise InfrastructureError(
                f"{self._name}: the agent was not ready within {self._start_seconds:g} s"
                f"{self._last_line()}"
            ) from None
        except EOFError:
            code = process.wait()
            # Who was killed may be started again; who gave up would give up again.
            error = DeviceLost if code < 0 else InfrastructureError
            raise error(
                f"{self._name}: the agent did not start: its process"
                f" {_ending(code)}{self._last_line()}"
            ) from None
        return read_ready_line(self._name, line)

    def _last_line(self) -> str:
        return last_line(self.folder / "log")


class ChildTransport(Transport):
    """Brings an agent up as a child of this process; a subclass says how it is started."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._agent: ChildAgent | None = None
        self._failure_reason = ""

    @abstractmethod
    def start_agent(self, agent: ChildAgent) -> Endpoint:
        """Start the agent by `agent.start`, and return what that returns."""

    def open(self) -> Endpoint:
        """Start the agent, and wait until it is ready."""
        self._failure_reason = ""
        self._agent = ChildAgent(self.profile.name, self.profile.start_timeout_seconds)
        try:
            return self.start_agent(self._agent)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the agent, and remove its folder."""
        if self._agent is not None:
            self._failure_reason = self._agent.end()
            self._agent = None

    def failure_reason(self) -> str:
        """Return how the agent's process ended and the last line of its log, if it did end."""
        return self._failure_reason if self._agent is None else self._agent.failure_reason()


def read_ready_line(name: str, line: bytes) -> int:
    """Return the port of an agent's ready line.

    Raises:
        InfrastructureError: it is none.

    """
    try:
        return int(json_value(line)["port"])
    except (ValueError, KeyError, TypeError):
        raise InfrastructureError(
            f"{name}: the agent printed {line[:80]!r} where its ready line was expected"
        ) from None


def last_line(log: Path) -> str:
    """Return what a log says last, to be added to a message; empty if it says nothing."""
    text = log.read_text(encoding="utf-8", errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"; it said: {lines[-1]}" if lines else ""


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
