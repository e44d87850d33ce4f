"""Ctrl-C, SIGTERM, and what else ends a run before its time: how it is heeded, and what is said."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Final

from edgeflare.core.interrupt import INTERRUPTED_BY, Interrupt, InterruptedBy
from edgeflare.errors import InfrastructureError
from edgeflare.record.database import DamagedDatabaseError
from edgeflare.record.journal import damaged_journal
from edgeflare.run.run_directory import RunDirectory
from edgeflare.signal_errors import handled_errors, signal_errors

INTERRUPTED: Final = 130
"""The exit code that shells give a process that Ctrl-C ended, and here SIGTERM too."""

_BY: Final[Mapping[int, InterruptedBy]] = {signal.SIGINT: "interrupt", signal.SIGTERM: "sigterm"}


@contextmanager
def interruptible(
    stopping: str = "verifying what was found", interrupt: Interrupt | None = None
) -> Iterator[Interrupt]:
    """Turn Ctrl-C and SIGTERM into a wish to stop, for as long as the context lasts.

    What runs within has to look whether the wish is urgent. What waits for a device to be opened
    does not heed it: a device is better opened before.

    Args:
        stopping: what is still done then, in words.
        interrupt: the wish, where a device that is open already has to know it; None for a new one.

    """
    interrupt = interrupt or Interrupt()

    def ask(number: int, _frame: FrameType | None) -> None:
        _ask(interrupt, _BY[number], stopping)

    before = {number: signal.signal(number, ask) for number in _BY}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def interruptible_once(stopping: str, interrupt: Interrupt | None = None) -> Iterator[Interrupt]:
    """Turn the first Ctrl-C or SIGTERM into a wish to stop; the next one ends what runs within.

    It does so by the error that stands for such a wish (`stopped_by`), whatever is waited for.

    Args:
        stopping: as for `interruptible`.
        interrupt: likewise.

    """
    interrupt = interrupt or Interrupt()

    def asked(by: InterruptedBy, _frame: FrameType | None) -> KeyboardInterrupt | None:
        _ask(interrupt, by, stopping)
        return interrupt_error(by) if interrupt.urgent() else None

    with signal_errors({number: partial(asked, by) for number, by in _BY.items()}):
        yield interrupt


def _ask(interrupt: Interrupt, by: InterruptedBy, stopping: str) -> None:
    """Note a wish to stop, and say of the first what is still done."""
    interrupt.ask(by)
    if not interrupt.urgent():
        said = INTERRUPTED_BY[interrupt.by]
        sys.stderr.write(f"\nstopping at {said}: {stopping}; {said} again stops at once\n")


_TERMINATED: Final = "SIGTERM"
"""What a KeyboardInterrupt holds that SIGTERM raised."""


@contextmanager
def as_ctrl_c() -> Iterator[None]:
    """Let SIGTERM end what runs as Ctrl-C does, for as long as the context lasts.

    What it raises says that it was SIGTERM (`stopped_by`).
    """
    errors = handled_errors(signal.SIGINT)
    with signal_errors({**errors, signal.SIGTERM: lambda _: interrupt_error("sigterm")}):
        yield


def interrupt_error(by: InterruptedBy) -> KeyboardInterrupt:
    """Return the error that stands for a wish to stop."""
    return KeyboardInterrupt(*[_TERMINATED] * (by == "sigterm"))


def stopped_by(error: BaseException) -> str:
    """Return what ended a command by an error that stands for a wish to stop, in words."""
    return INTERRUPTED_BY["sigterm" if _is_sigterm(error) else "interrupt"]


def _is_sigterm(error: BaseException | None) -> bool:
    return error is not None and error.args == (_TERMINATED,)


@contextmanager
def resumable_work() -> Iterator[None]:
    """Say of a failure of a device, a process or a disk that the same command goes on."""
    try:
        yield
    except (InfrastructureError, OSError) as error:
        raise InfrastructureError(f"{error}; the same command with --resume goes on") from error


@contextmanager
def failures_reported(directory: RunDirectory, resumed_at: Path) -> Iterator[None]:
    """Say of a failure of a device, a process or a disk where the run is, and what to type next.

    Args:
        directory: the run directory.
        resumed_at: what the user names to go on: it, or the folder of several runs that it is in.

    """
    try:
        yield
    except DamagedDatabaseError as error:
        raise damaged_journal(error.path, error.why) from None
    except (InfrastructureError, OSError) as error:
        raise InfrastructureError(
            f"{error}; what was found is in {directory.path}, and the same command with "
            f"--out {resumed_at} --resume goes on"
        ) from error
