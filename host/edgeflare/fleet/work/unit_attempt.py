"""An attempt at a unit of work: one command, on one device, in a process of its own."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from edgeflare.errors import UserError
from edgeflare.fleet.work import bound_command
from edgeflare.fleet.work.local_disk import require_local_disk
from edgeflare.fleet.work.run_archive import archive_run, unpack_run
from edgeflare.run.run_directory import JOURNAL

LOOK_SECONDS = 5.0
"""Between two reports of how far an attempt is: the head takes about 1,500 in a second."""

STOP_SECONDS = 600.0
"""After which an attempt that was asked to stop is killed: a batch on a slow device takes long."""

_TAIL = 2000
"""Characters of what the command said that are sent along."""


@dataclass(frozen=True, slots=True)
class AttemptOrder:
    """What an attempt is to do; plain values, since it is sent to another host.

    Attributes:
        campaign: the fingerprint of what the fleet does, by which its folder is named.
        unit: name of the unit.
        number: of the attempt at it, from 1; a higher one fences off those before.
        command: of `edgeflare`, without what belongs to the unit, the device and the folder.
        folder: in which the command runs, so that the paths that it names are found.
        seed_ids: those of the unit, as `--seed-ids` takes them; None where the command has none.
        device: as `--device` takes it.
        backup_seconds: between two backups of the run to the head.

    """

    campaign: str
    unit: str
    number: int
    command: tuple[str, ...]
    folder: str
    seed_ids: str | None
    device: str
    backup_seconds: float


@dataclass(frozen=True, slots=True)
class AttemptReport:
    """How far an attempt is.

    Attributes:
        unit: name of the unit.
        number: of the attempt.
        ended: searches that have ended.
        found: of these with a finding.
        seconds: since it began.
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
        exit_code: of the command; see docs/exit-codes.md.
        said: the end of what it said on stderr.
        run: the run directory, archived; None where there is none.
        seconds: it took.

    """

    exit_code: int
    said: str
    run: bytes | None
    seconds: float


def run_attempt(
    order: AttemptOrder,
    screening: bytes | None,
    backup: bytes | None,
    report: Callable[[AttemptReport], bool],
) -> AttemptResult:
    """Make an attempt at a unit on this host, and return what came of it.

    Args:
        order: what is done.
        screening: the archived run of the screening; None for none.
        backup: what an earlier attempt had, to go on with; None for none.
        report: tells the head how far it is; returns whether to go on.

    Raises:
        UserError: the host has no such folder, or that of fleets lies on a network file system.

    """
    begun = time.monotonic()
    if not os.path.isdir(order.folder):
        raise UserError(
            f"{platform.node()} has no folder {order.folder}: a pair lies at the same path on all"
            " hosts of a fleet"
        )
    folder = _folder(order)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", bound_command.__name__, str(os.getpid()), *order.command]
    command += ["--device", order.device]
    if order.seed_ids is not None:
        command += ["--seed-ids", order.seed_ids]
    if screening is not None:
        unpack_run(screening, folder / "screening")
        command += ["--screening", str(folder / "screening")]
    run = folder / "run"
    command += ["--out", str(run)]
    if backup is not None:
        unpack_run(backup, run)
        command.append("--resume")
    with open(folder / "stderr.txt", "wb") as said:
        process = subprocess.Popen(
            command,
            cwd=order.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        try:
            code = _watch(process, order, run, report, begun)
        finally:
            _end(process)
    text = (folder / "stderr.txt").read_text(encoding="utf-8", errors="replace")
    result = AttemptResult(code, text[-_TAIL:], archive_run(run), time.monotonic() - begun)
    shutil.rmtree(folder, ignore_errors=True)
    return result


def _folder(order: AttemptOrder) -> Path:
    cache = Path(os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or "~/.cache"))
    fleets = cache / "edgeflare" / "fleets"
    fleets.mkdir(parents=True, exist_ok=True)
    require_local_disk(fleets)
    return fleets / order.campaign / f"{order.unit}-{order.number}"


def _watch(
    process: subprocess.Popen[bytes],
    order: AttemptOrder,
    run: Path,
    report: Callable[[AttemptReport], bool],
    begun: float,
) -> int:
    """Report how far the command is until it ends, and stop it where that is asked."""
    backed_up, asked = time.monotonic(), 0.0
    while True:
        try:
            return process.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            now = time.monotonic()
        backup = None
        if now - backed_up >= order.backup_seconds:
            backup, backed_up = archive_run(run), now
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
        with closing(sqlite3.connect(f"{journal.absolute().as_uri()}?mode=ro", uri=True)) as db:
            query = "SELECT count(*), coalesce(sum(ended = 'finding'), 0) FROM chains"
            ended, found = db.execute(query).fetchone()
            return int(ended), int(found)
    except sqlite3.Error:
        return 0, 0


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
