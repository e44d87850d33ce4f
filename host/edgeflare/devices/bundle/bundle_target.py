"""What a bundle can be made for."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeflare.errors import InfrastructureError, UserError, suggestion

# Downloads over a slow line take minutes; nothing that a bundle needs takes half an hour.
_SECONDS = 1800.0


@dataclass(frozen=True, slots=True)
class BundleTarget:
    """A kind of device.

    Attributes:
        name: as the user says it.
        machine: the architecture as kernels and wheels name it.
        debian: as Debian names it.
        loader: file name of glibc's dynamic loader there.

    """

    name: str
    machine: str
    debian: str
    loader: str

    @property
    def multiarch(self) -> str:
        """Return the folder of Debian's libraries for it."""
        return f"{self.machine}-linux-gnu"


_AARCH64 = ("aarch64", "arm64", "ld-linux-aarch64.so.1")
_X86_64 = ("x86_64", "amd64", "ld-linux-x86-64.so.2")

TARGETS = {
    "linux-aarch64": BundleTarget("linux-aarch64", *_AARCH64),
    "linux-x86_64": BundleTarget("linux-x86_64", *_X86_64),
    # The same files: its kernel is Linux, and the bundle brings all that lies above the kernel.
    "android-arm64": BundleTarget("android-arm64", *_AARCH64),
}


def find_target(name: str) -> BundleTarget:
    """Return the target of that name.

    Raises:
        UserError: there is none.

    """
    if name not in TARGETS:
        raise UserError(
            f'unknown target "{name}"{suggestion(name, TARGETS)}; expected one of'
            f" {', '.join(TARGETS)}"
        )
    return TARGETS[name]


def native_target(machine: str) -> BundleTarget:
    """Return a target whose programs run on a machine of that architecture.

    Raises:
        UserError: none do.

    """
    names = {"arm64": "aarch64", "AMD64": "x86_64"}
    for target in TARGETS.values():
        if target.machine == names.get(machine, machine):
            return target
    raise UserError(
        f"bundles cannot be made on {machine}; make it on an x86_64 or aarch64 machine with Debian"
        " and copy the file"
    )


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
        environment: whole environment of the program; None for this process's own.
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
