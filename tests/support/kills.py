"""A function that is killed before each rename, write and removal that it does, once for each.

It runs in a forked process, which Python's audit events end without a word, as SIGKILL does.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_STEPS = frozenset(
    {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.chmod", "os.truncate"}
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_ENDED, _KILLED, _OPENING, _FAILED = 0, 77, 78, 79


@dataclass(frozen=True, slots=True)
class Kill:
    """Where a process was killed: before which of its steps, or with its file made and empty."""

    step: int
    torn: bool


def killed_at_each(
    tmp_path: Path,
    prepare: Callable[[Path], Callable[[], object]],
    check: Callable[[Path, Kill], None],
    *,
    every: int = 1,
) -> int:
    """Kill what `prepare` returns at each step below a folder of its own, and look at the folder.

    Args:
        tmp_path: gets a folder for each kill.
        prepare: makes what lies in such a folder, and returns what is to be killed there.
        check: is given the folder that was left, and what was killed.
        every: takes each such step only.

    Returns:
        How many kills there were.

    """
    kills, step, torn = 0, 1, False
    while True:
        folder = tmp_path / f"{step}-{int(torn)}"
        folder.mkdir()
        ended = _killed(prepare(folder), folder, Kill(step, torn))
        if ended == _ENDED:
            return kills
        assert ended in (_KILLED, _OPENING), f"step {step} failed"
        kills += 1
        check(folder, Kill(step, torn))
        torn = ended == _OPENING and not torn
        step += 0 if torn else every


def _killed(function: Callable[[], object], folder: Path, kill: Kill) -> int:
    child = os.fork()
    if child == 0:
        try:
            sys.addaudithook(FileSteps(str(folder), kill, _exit_here))
            function()
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            os._exit(_FAILED)
        os._exit(_ENDED)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _exit_here(*, opening: bool) -> None:
    os._exit(_OPENING if opening else _KILLED)


class FileSteps:
    """An audit hook that ends its process before one of the steps that this does below a folder."""

    def __init__(
        self,
        folder: str,
        kill: Kill,
        end: Callable[..., None],
        done: list[int] | memoryview[int] | None = None,
    ) -> None:
        """Count from the next step on.

        Args:
            folder: below which they count, as do relative names.
            kill: which of them is the last.
            end: ends the process; is told by `opening` whether it was to make a file.
            done: whose one number counts the steps; shared with other processes where it is.

        """
        self._folder, self._kill, self._end, self._at_it = folder, kill, end, False
        self._done: list[int] | memoryview[int] = [0] if done is None else done

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        opens = event == "open" and isinstance(args[2], int) and bool(args[2] & _WRITING)
        if self._at_it or not (opens or event in _STEPS) or not self._is_below(args):
            return
        self._done[0] += 1
        if self._done[0] < self._kill.step:
            return
        if self._kill.torn and opens:
            self._at_it = True
            with contextlib.suppress(OSError):  # as it would have failed itself
                os.open(args[0], args[2], 0o644)
        self._end(opening=opens and bool(args[2] & os.O_CREAT))

    def _is_below(self, args: tuple[Any, ...]) -> bool:
        # Relative names are those that shutil gives beside a descriptor of their folder.
        return isinstance(args[0], (str, bytes, os.PathLike)) and (
            not os.path.isabs(path := os.fsdecode(args[0])) or path.startswith(self._folder)
        )


NOTES = ("notes.txt", ".git/config", "findings/mine.txt")
"""What the user has put into a folder."""


def put_notes(*folders: Path) -> None:
    """Put the user's files into folders."""
    for name, folder in ((name, folder) for name in NOTES for folder in folders):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("the user's")


def require_notes(*folders: Path) -> None:
    """Fail where one of the user's files is gone or changed."""
    for name, folder in ((name, folder) for name in NOTES for folder in folders):
        assert (folder / name).read_text() == "the user's"


def remove_notes(*folders: Path) -> None:
    """Remove the user's files, and folders that then are empty."""
    for name, folder in ((name, folder) for name in NOTES for folder in folders):
        (folder / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            (folder / name).parent.rmdir()
