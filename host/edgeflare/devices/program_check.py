"""A program or a package that this machine may have, and what to do where it is missing."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

_PROGRAM_SECONDS = 20.0
"""For a program to say its version, on a busy machine."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked for.

    Attributes:
        name: what it is.
        found: what was found; empty if nothing.
        needed: whether nothing works without it.
        mend: the command that brings it, or what to do.

    """

    name: str
    found: str
    needed: bool
    mend: str


def check_program(name: str, program: str, question: str, mend: str) -> Check:
    """Look for a program; the first line that it says of its version is what was found.

    Args:
        name: what the check is called.
        program: the command, or its path.
        question: the option by which it tells its version.
        mend: see `Check`.

    """
    try:
        done = subprocess.run(
            [program, question],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROGRAM_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return Check(name, "", False, mend)
    said = (done.stdout + done.stderr).strip().splitlines()
    return Check(name, said[0] if said and not done.returncode else "", False, mend)


def is_installed(package: str) -> bool:
    """Tell whether a package is installed for this Python."""
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True
