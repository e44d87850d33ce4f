"""An attempt at a unit of work: one command, on one device, in a process of its own."""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from edgeflare.errors import EdgeFlareError, UserError
from edgeflare.fleet.work import bound_command
from edgeflare.fleet.work.folder_archive import NotARunError, archive_folder, unpack_folder
from edgeflare.fleet.work.local_disk import require_local_disk
from edgeflare.fleet.work_units import DEVICE, RUN, filled_command
from edgeflare.record.database import followed
from edgeflare.record.folder_lock import is_locked, lock_folder
from edgeflare.run.run_directory import JOURNAL

LOOK_SECONDS = 5.0
"""Interval between reports of how far an attempt is: the head takes about 1,500 in a second."""

STOP_SECONDS = 600.0
"""Time that an attempt has to stop when asked, before it is killed: a batch on a slow device takes
long."""

_INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended."""

_TAIL = 2000
"""Characters of what the command said on stderr that are sent along."""

_PRINTED = 2**22
"""The most bytes of what it printed that are: a survey of many inputs as JSON has some."""

_LEAST_COLUMNS, _BEHIND_THE_RUN = 80, 20
"""Width of the lines that it prints: as where there is no terminal, or the run's path and this much
behind it, for a file of the run. The path is replaced by where the run lies in the end."""


@dataclass(frozen=True, slots=True)
class AttemptOrder:
    """What an attempt is to do; plain values, since it is sent to another host.

    Attributes:
        campaign: the fingerprint of what the fleet does, by which its folder is named.
        unit: name of the unit.
        number: the attempt's number, from 1; a higher one fences off those before.
        command: arguments of `edgeflare`; see `filled_command`.
        folder: the folder in which the command runs, so that the paths that it names are found.
        device: as `--device` takes it.
        backup_seconds: interval between backups of the run to the head.

    """

    campaign: str
    unit: str
    number: int
    command: tuple[str, ...]
    folder: str
    device: str
    backup_seconds: float


@dataclass(frozen=True, slots=True)
class AttemptReport:
    """How far an attempt is.

    Attributes:
        unit: name of the unit.
        number: the attempt's number.
        ended: searches that have ended.
        found: searches that have ended with a finding.
        seconds: time since it began.
        backup: the run as it is; None where the last backup is recent.

    """

    unit: str
    number: int
    ended: int
    found: int
    seconds: float
    backup: bytes | None = None


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """How an attempt ended.

    Attributes:
        exit_code: exit code of the command; see docs/exit-codes.md.
        said: the end of what it said on stderr.
        printed: what it said on stdout, with `RUN` in the place of its run directory.
        run: the run directory, archived; None where there is none.
        seconds: time that it took.
        found: searches with a finding.

    """

    exit_code: int
    said: str
    run: bytes | None
    seconds: float
    found: int = 0
    printed: str = ""


def run_attempt(
    order: AttemptOrder,
    given: Mapping[str, bytes],
    backup: bytes | None,
    report: Callable[[AttemptReport], bool],
) -> AttemptResult:
    """Make an attempt at a unit on this host, and return what came of it.

    Args:
        order: what is done.
        given: archived run directories, by the word that stands for each in the command.
        backup: what an earlier attempt had, to go on with; None for none.
        report: tells the head how far it is; returns whether to go on.

    Raises:
        UserError: the host has no such folder, or that of fleets lies on a network file system.

    """
    if not os.path.isdir(order.folder):
        raise UserError(
            f"{platform.node()} has no folder {order.folder}: a pair lies at the same path on all"
            " hosts of a fleet"
        )
    with _folder(order) as folder:
        return _run_in(folder, order, given, backup, report)


def _run_in(
    folder: Path,
    order: AttemptOrder,
    given: Mapping[str, bytes],
    backup: bytes | None,
    report: Callable[[AttemptReport], bool],
) -> AttemptResult:
    begun = time.monotonic()
    run = folder / "run"
    words = {DEVICE: order.device, RUN: str(run)}
    for at, (word, archived) in enumerate(given.items()):
        words[word] = str(folder / f"given-{at}")
        unpack_folder(archived, folder / f"given-{at}")
    resume = backup is not None and _is_unpacked(backup, run)
    command = [sys.executable, "-m", bound_command.__name__, str(os.getpid())]
    command += filled_command(order.command, words, resume=resume)
    with open(folder / "stderr.txt", "wb") as said, open(folder / "stdout.txt", "wb") as printed:
        # Nothing of Ray's is inherited, and lines do not cut the run's path.
        kept = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
        process = subprocess.Popen(
            command,
            cwd=order.folder,
            env={**kept, "COLUMNS": str(max(_LEAST_COLUMNS, len(str(run)) + _BEHIND_THE_RUN))},
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=said,
            start_new_session=True,  # so that Ctrl-C on a terminal reaches it once, by the head
        )
        try:
            code = _watch(process, order, run, report, begun)
        finally:
            # What the command started is in its session.
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if code == -signal.SIGINT:  # it was asked to stop as it began or ended
        code = _INTERRUPTED
    _, found = _progress(run)
    return AttemptResult(
        exit_code=code,
        said=_text(folder / "stderr.txt", run)[-_TAIL:],
        run=archive_folder(run),
        seconds=time.monotonic() - begun,
        found=found,
        printed=_text(folder / "stdout.txt", run),
    )


def _is_unpacked(backup: bytes, run: Path) -> bool:
    """Unpack what an earlier attempt had; return False where that is no run to go on with.

    Another attempt has sent it: this host is not to blame for it, and begins anew.
    """
    try:
        unpack_folder(backup, run)
    except NotARunError:
        return False
    return True


def _text(file: Path, run: Path) -> str:
    """Return what a command wrote, with `RUN` in the place of the run directory's path."""
    with file.open("rb") as written:
        text = written.read(_PRINTED).decode(errors="replace")
    return text.replace(str(run), RUN)


@contextmanager
def _folder(order: AttemptOrder) -> Iterator[Path]:
    """Yield a new folder for an attempt, which is removed at the end.

    An earlier attempt of the same number may still be ending, where its command was killed before
    it wrote down that it had begun: so no two have the same folder. What killed ones have left is
    removed once nobody works there any more.
    """
    cache = Path(os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or "~/.cache"))
    fleets = cache / "edgeflare" / "fleets"
    fleets.mkdir(parents=True, exist_ok=True)
    require_local_disk(fleets)
    campaign = fleets / order.campaign
    with _alone_in(fleets):
        campaign.mkdir(exist_ok=True)
        for left in campaign.iterdir():
            if not is_locked(left) and not is_locked(left / "run"):
                shutil.rmtree(left, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{order.unit}-{order.number}-", dir=campaign))
        lock = lock_folder(folder)
    try:
        yield folder
    finally:
        with _alone_in(fleets):
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
            with contextlib.suppress(OSError):  # others work in it
                campaign.rmdir()


@contextmanager
def _alone_in(fleets: Path) -> Iterator[None]:
    """Have no other attempt make or remove a folder for as long as the context lasts."""
    lock = os.open(fleets, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _watch(
    process: subprocess.Popen[bytes],
    order: AttemptOrder,
    run: Path,
    report: Callable[[AttemptReport], bool],
    begun: float,
) -> int:
    """Report how far the command is until it ends, and stop it where that is asked."""
    backed_up, asked = time.monotonic(), 0.0
    report(AttemptReport(order.unit, order.number, *_progress(run), 0.0))
    while True:
        try:
            return process.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            now = time.monotonic()
        backup = None
        if now - backed_up >= order.backup_seconds:
            backup, backed_up = archive_folder(run), now
        ended, found = _progress(run)
        on = report(AttemptReport(order.unit, order.number, ended, found, now - begun, backup))
        if not on and not asked:
            process.send_signal(signal.SIGINT)
            asked = now
        if asked and now - asked > STOP_SECONDS:
            process.kill()


def _progress(run: Path) -> tuple[int, int]:
    """Return how many searches of a run have ended, and how many of them with a finding."""
    journal = run / JOURNAL
    if not journal.is_file():
        return 0, 0
    try:
        with followed(journal) as db:
            query = "SELECT count(*), coalesce(sum(ended = 'finding'), 0) FROM chains"
            ended, found = db.execute(query).fetchone()
            return int(ended), int(found)
    except EdgeFlareError:
        return 0, 0
