"""The seam between the deployment of agents and the ways to reach a device's shell."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol

from edgeflare.devices.connection import DeviceLost
from edgeflare.errors import InfrastructureError


@dataclass(frozen=True, slots=True)
class Output:
    """What a command printed, and how it ended.

    Attributes:
        stdout: what it printed; where the link cannot tell them apart, errors too.
        stderr: errors that it printed.
        exit_code: exit code of the command.

    """

    stdout: str
    stderr: str
    exit_code: int


class RemoteError(InfrastructureError):
    """A command on a device, or one that should have reached it, failed.

    Attributes:
        command: what was to be done, in the words of its caller.
        output: what it printed.
        status: exit code of the command; None if it did not end.

    """

    def __init__(
        self, message: str, command: str, output: str = "", status: int | None = None
    ) -> None:
        super().__init__(message)
        self.command = command
        self.output = output
        self.status = status


class RemoteCommandFailed(RemoteError):  # noqa: N818 - what happened
    """The device is there, but a command on it failed; trying again would not help."""


class RemoteLost(RemoteError, DeviceLost):  # noqa: N818 - see there
    """The device cannot be reached, or no longer; trying again may help."""


class Remote(Protocol):
    """A device's shell. As a context manager it opens and closes itself.

    Every method but `close` and `failure_reason` raises RemoteLost where the device cannot be
    reached.
    """

    @property
    def place(self) -> str:
        """Return what the device is called in messages."""

    @property
    def device(self) -> str:
        """Return what tells the device from all others; known once it was opened."""

    def open(self) -> None:
        """Reach the device.

        Raises:
            UserError: it is not said which device, or the device must first be told to let us in.
            RemoteCommandFailed: it does not let us in.

        """

    def close(self) -> None:
        """Let go of the device, and of all that leads there. Closing twice is no error."""

    def run(self, script: str, seconds: float, command: str) -> Output:
        """Run a script of the POSIX shell, and wait until it ends.

        Args:
            script: what to run; shorter than 16,000 characters.
            seconds: the time that it may take.
            command: what it does, for messages.

        Raises:
            RemoteCommandFailed: it did not end in time.

        """

    def push(self, file: Path, target: str, seconds: float) -> None:
        """Copy a file to a path on the device, in a folder that is there.

        Raises:
            RemoteCommandFailed: it cannot be written there, or not in time.

        """

    def forward(self, port: int) -> AbstractContextManager[int]:
        """Give a port of the host's loopback that leads to one of the device's, for a while.

        Raises:
            RemoteCommandFailed: no port can be had.

        """

    def failure_reason(self) -> str:
        """Return what is known of why the device cannot be reached; empty if nothing is."""

    def __enter__(self) -> Remote:
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
