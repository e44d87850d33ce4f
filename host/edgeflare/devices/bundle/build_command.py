"""Programs of the host that make a bundle, and how their failure is told."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from edgeflare.errors import InfrastructureError

# Downloads over a slow line take minutes; nothing that a bundle needs takes half an hour.
_SECONDS = 1800.0


class BuildCommandFailed(InfrastructureError):  # noqa: N818 - what happened, as in DeviceLost
    """A program ended with an error.

    Attributes:
        output: all that it printed.

    """

    def __init__(self, program: str, output: str) -> None:
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith(("E:", "ERROR:"))]
        said = (errors or lines or ["nothing"])[-1]
        super().__init__(f"{program} failed; it said: {said}")
        self.output = output


def run(
    command: Sequence[str], environment: Mapping[str, str] | None = None, cwd: Path | None = None
) -> str:
    """Run a program, and return what it printed.

    Args:
        command: the program and its arguments.
        environment: its whole environment; None for this process's own.
        cwd: the folder that it runs in.

    Raises:
        FileNotFoundError: there is no such program.
        CommandFailed: it failed, or took for ever.

    """
    try:
        done = subprocess.run(
            command,
            env=environment,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        output = (late.output or b"").decode(errors="replace")
        raise BuildCommandFailed(command[0], f"{output}\nno end within {_SECONDS:g} s") from None
    output = done.stdout.decode(errors="replace")
    if done.returncode:
        raise BuildCommandFailed(command[0], output)
    return output
