"""The command line of a unit, with words in the place of what only an attempt's host knows."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Final

DEVICE: Final = "\0DEVICE"
"""In place of the device's name. An argument of a program cannot have a NUL, so that no other word
of a command is taken for one of these."""

RUN: Final = "\0RUN"
"""In place of the run directory that an attempt works in."""

RESUME: Final = "\0RESUME"
"""Becomes `--resume` where an attempt goes on with what an earlier one had, and nothing else."""


def given_run(name: str) -> str:
    """Return the word in place of a run directory that the head gives to attempts."""
    return f"\0{name.upper()}"


def filled_command(command: Sequence[str], words: Mapping[str, str], *, resume: bool) -> list[str]:
    """Return a command as it is run.

    Args:
        command: of a unit.
        words: what stands for `DEVICE`, `RUN` and what the head gives.
        resume: whether it goes on with what an earlier attempt had.

    """
    told = [words.get(one, one) for one in command if one != RESUME or resume]
    return ["--resume" if one == RESUME else one for one in told]


def shown_command(command: Sequence[str]) -> str:
    """Return a command as people read it."""
    return shlex.join(one.replace("\0", "") for one in command if one != RESUME)
