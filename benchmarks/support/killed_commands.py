"""Whole commands that are killed before one of their steps on files, and the commands after them.

A command runs in a fork of this process, which SIGKILL ends before a step that Python's audit
events tell of. What it has begun, such as agents and workers, becomes this process's, so that what
does not end is seen. Then the command is typed again, changed as each refusal says.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import command_server
from kills import FileSteps, Kill
from processes import alive, children

MOST_SECONDS: Final = 600.0
"""After which a command is taken to hang: many times what the slowest one takes."""

LINGERING_SECONDS: Final = 20.0
"""After which a process that a killed command has begun is taken to stay."""

OUT: Final = "out"
"""The folder that a command writes."""

ELSEWHERE: Final = "elsewhere"
"""The folder that is named where a command asks for another one."""

_CHILD_SUBREAPER: Final = 36
_NEVER: Final = Kill(sys.maxsize, torn=False)
_TYPED: Final = 5
"""The most commands that are typed after a kill."""


@dataclass(frozen=True)
class Typed:
    """A command that was typed.

    Attributes:
        words: of it.
        code: its exit code, or minus the signal.
        said: what it wrote to stderr.
        steps: how many it did below its working directory.

    """

    words: tuple[str, ...]
    code: int
    said: str
    steps: int

    @property
    def last_line(self) -> str:
        """What it wrote to stderr last."""
        lines = self.said.strip().splitlines()
        return lines[-1] if lines else ""

    @property
    def fault(self) -> str:
        """What is wrong with how it ended, in a few words; empty for nothing."""
        if "mistake in edgeflare" in self.said or "Traceback (most" in self.said:
            return "mistake"
        if self.code not in (0, 1, 2, 3):
            return f"exit code {self.code}"
        if self.code in (2, 3) and not self.last_line.startswith("edgeflare: "):
            return "no line"
        return ""


@dataclass
class CommandCall:
    """Where commands run, and as what.

    Attributes:
        place: the working directory.
        environment: added to that of this process.
        become: is called in the process of the command first.
        known: processes of this one that are not of commands.

    """

    place: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    become: Callable[[], None] = lambda: None
    known: frozenset[int] = frozenset()

    def type(self, words: Sequence[str], kill: Kill = _NEVER, *, watcher: bool = False) -> Typed:
        """Run a command to its end, or to where it is killed.

        Args:
            words: of it, without its name.
            kill: where it is killed.
            watcher: whether the parent that watches it is killed too, where it has one.

        """
        shared = memoryview(mmap.mmap(-1, 8)).cast("Q")
        said = self.place.with_name(f"{self.place.name}.said")
        if (pid := os.fork()) == 0:
            self._begin(words, kill, shared, said, watcher=watcher)
        until = time.monotonic() + MOST_SECONDS
        while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if time.monotonic() > until:
                os.kill(pid, signal.SIGALRM)
                until += MOST_SECONDS
            time.sleep(0.01)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return Typed(tuple(words), code, said.read_text(errors="replace"), shared[0])

    def _begin(
        self,
        words: Sequence[str],
        kill: Kill,
        shared: memoryview[int],
        said: Path,
        *,
        watcher: bool,
    ) -> None:
        """Become the command; does not return."""
        try:
            first = os.getpid()
            os.setsid()
            os.chdir(self.place)
            for number, path in ((0, os.devnull), (1, os.devnull), (2, str(said))):
                flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
                os.dup2(os.open(path, flags, 0o600), number)
            os.environ.update(self.environment)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self.become()

            def end(*, opening: bool) -> None:
                del opening
                if watcher:
                    os.kill(first, signal.SIGKILL)
                os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(FileSteps(str(self.place), kill, end, shared))
            command_server.call("edgeflare", *words)
        except SystemExit as ended:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(ended.code if isinstance(ended.code, int) else int(ended.code is not None))
        except BaseException as error:
            os.write(2, f"Traceback (most likely of the benchmark): {error!r}\n".encode())
        finally:
            os._exit(70)

    def seconds_to_go(self) -> float | None:
        """Wait for what killed commands have begun to end.

        Returns:
            How long that took; None where a process stays, which is ended.

        """
        began = time.monotonic()
        while left := self._left():
            if time.monotonic() - began > LINGERING_SECONDS:
                for pid in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                return None
            time.sleep(0.01)
        return time.monotonic() - began

    def _left(self) -> list[int]:
        left = [pid for pid in children(os.getpid()) if pid not in self.known]
        for pid in left:
            if not alive(pid):
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
        return [pid for pid in left if alive(pid)]


def adopt_orphans() -> None:
    """Have what commands leave behind become children of this process."""
    ctypes.CDLL(None).prctl(_CHILD_SUBREAPER, 1)


def typed_again(call: CommandCall, ways: Sequence[Sequence[str]], out: str = OUT) -> list[Typed]:
    """Type a command until it comes to its end, changed each time as its last line says.

    Args:
        call: where.
        ways: the words of it as it is typed first, without --out, and as it is typed where what is
            said cannot be followed.
        out: the folder that it writes.

    Returns:
        All that was typed; the last one has ended well, unless it says what cannot be followed.

    """
    said: list[Typed] = []
    words, *left = ways
    while True:
        said.append(call.type([*words, "--out", out]))
        line = said[-1].last_line
        if said[-1].fault or said[-1].code in (0, 1) or len(said) == _TYPED:
            return said
        plain = [one for one in words if one not in ("--resume", "--overwrite")]
        typed = {one for command in said for one in command.words}
        if "leave out --resume" in line or "leave --resume" in line:
            words = plain
        elif "--resume" in line and "--resume" not in typed:
            words = [*plain, "--resume"]
        elif "--overwrite" in line and "--overwrite" not in typed:
            words = [*plain, "--overwrite"]
        elif "name another" in line and out != ELSEWHERE:
            words, out = plain, ELSEWHERE
        elif left:
            words = left.pop()


def place_of(typed: Typed) -> str:
    """Return the folder that a typed command writes."""
    return typed.words[-1]


def faults_of(said: Sequence[Typed], *, elsewhere: bool) -> list[str]:
    """Return what is wrong with how commands ended that were typed after each other.

    Args:
        said: the commands.
        elsewhere: whether the last of them may have had to name another folder.

    """
    faults = [one.fault for one in said if one.fault]
    if said[-1].code:
        faults.append(f"stuck: {said[-1].last_line}")
    elif place_of(said[-1]) == ELSEWHERE and not elsewhere:
        faults.append("another folder had to be named")
    return faults


def kind_of_temporary(name: str) -> str:
    """Return the name of a temporary file or folder up to what is random in it."""
    return re.sub(r"[^-]+$", "", name)


def names_below(folder: Path) -> frozenset[str]:
    """Return the names of all that lies below a folder; those of folders end in a stroke."""
    return frozenset(
        f"{path.relative_to(folder).as_posix()}{'/' if path.is_dir() else ''}"
        for path in folder.rglob("*")
    )
