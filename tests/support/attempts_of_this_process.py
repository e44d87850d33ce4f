"""Commands on a fleet whose attempts are real commands, made by this process one after the other.

The cluster alone is stood in for, so that tests need no Ray. An attempt starts its command in a
process of its own, or has it called within this one, which takes a quarter of the time.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

from attempts_in_memory import BegunAttempt, EngineInMemory
from called_commands import call_here
from edgeflare.fleet import fleet_job
from edgeflare.fleet.work import unit_attempt
from edgeflare.fleet.work.unit_attempt import AttemptReport, AttemptResult, run_attempt
from forked_commands import forked_bound_command

Outcome = Callable[[BegunAttempt], AttemptResult | str]


class EngineOfThisProcess(EngineInMemory):
    """Makes attempts in this process, one after the other."""

    def require_same_versions(self) -> None:
        pass


class AttemptsHere:
    """What commands of this process have begun, and how their attempts end.

    Attributes:
        begun: attempts, in their order.
        outcome: makes an attempt.
        told: returns the reports that arrive at a look.

    """

    def __init__(self) -> None:
        self.begun: list[BegunAttempt] = []
        self.outcome: Outcome = made_attempt
        self.told: Callable[[], Sequence[AttemptReport]] = tuple

    def units(self) -> list[str]:
        """Return the units that attempts were begun at."""
        return [one.order.unit for one in self.begun]

    def make_engine(self, *_: Any) -> EngineOfThisProcess:
        """Return the engine of a command, as that of Ray is made."""
        return EngineOfThisProcess(self.outcome, told=lambda _: self.told(), begun=self.begun)


def attempts_here(monkeypatch: pytest.MonkeyPatch, cache: Path) -> AttemptsHere:
    """Have commands of this process make their attempts themselves.

    Args:
        monkeypatch: takes it back.
        cache: a folder for what attempts keep.

    """
    here = AttemptsHere()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr(fleet_job, "cluster", lambda *_: nullcontext())
    python = SimpleNamespace(executable=str(forked_bound_command()))
    monkeypatch.setattr(unit_attempt, "sys", python)
    engine = "edgeflare.fleet.cluster.ray_engine"
    monkeypatch.setitem(sys.modules, engine, SimpleNamespace(RayEngine=here.make_engine))
    return here


def made_attempt(attempt: BegunAttempt) -> AttemptResult:
    """Make an attempt to its end."""
    return run_attempt(attempt.order, attempt.given, attempt.backup, lambda _: True)


class CommandHere:
    """A command called within this process, with what is used of `subprocess.Popen`.

    It has the folder, the environment and the devices' agents of its caller.
    """

    def __init__(
        self, command: Sequence[str], *, cwd: str, stdout: IO[bytes], stderr: IO[bytes], **_: Any
    ) -> None:
        assert Path(cwd).samefile(".")
        said = call_here(*command[4:])  # behind `python -m MODULE PARENT`
        stdout.write(said.out.encode())
        stderr.write(said.err.encode())
        self._code = said.code

    def wait(self, _seconds: float | None = None) -> int:
        """Return the exit code."""
        return self._code

    poll = wait


def call_commands_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have attempts call their commands within this process: none can be stopped on its way."""
    called = SimpleNamespace(Popen=CommandHere, DEVNULL=subprocess.DEVNULL)
    monkeypatch.setattr(unit_attempt, "subprocess", called)
