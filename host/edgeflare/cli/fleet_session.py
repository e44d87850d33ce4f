"""A job on a fleet: the cluster joined, the progress shown, Ctrl-C heeded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from edgeflare.cli.console import Console
from edgeflare.cli.interruptible import interruptible
from edgeflare.fleet.fleet_job import FleetJob, JobEnd, opened_fleet
from edgeflare.fleet.record.fleet_folder import PAGE
from edgeflare.fleet.record.fleet_state import FleetState
from edgeflare.pages.facts import count_of
from edgeflare.progress import say
from edgeflare.untrusted_text import printable

LINE_SECONDS: Final = 30.0
"""Seconds between two lines of progress; a unit takes minutes."""


def run_job(job: FleetJob) -> JobEnd:
    """Do a job on a fleet, its progress shown, Ctrl-C heeded.

    Raises:
        UserError: it has to be corrected, or the fleet has no such devices.
        InfrastructureError: the cluster is not reached, no device is left, or a disk is full; says
            how to go on.

    """
    job.require_unchanged()
    if job.is_done():
        return JobEnd(complete=True, kept=True)
    job.offered()  # which may be refused, before anything is shown
    with (
        interruptible(job.stopping) as interrupt,
        fleet_progress(job.folder.path) as shown,
        opened_fleet(job, stopped=interrupt.asked, urgent=interrupt.urgent, shown=shown) as runs,
    ):
        return job.run(runs)


def look_at_job(job: FleetJob) -> int:
    """Print what would be done on a fleet, and return the exit code; no host is asked.

    Raises:
        UserError: the fleet has no such devices.

    """
    for line in job.look_lines():
        say(Console(), line)
    return 0


@contextmanager
def fleet_progress(folder: Path) -> Iterator[Callable[[FleetState], None]]:
    """Show how far all hosts are; yields what is told of each change.

    Args:
        folder: folder of the fleet's work, which has more to look at.

    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _ProgressLines(console, folder).show
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=console,
    ) as progress:
        task = progress.add_task("joining the cluster", total=None)
        warned = _AwayWarnings(console)

        def show(state: FleetState) -> None:
            warned.show(state)
            units, seeds = len(state.units), sum(unit.seeds for unit in state.searched)
            done = sum(unit.status == "done" for unit in state.units)
            found = sum(unit.found for unit in state.searched)
            quarantined = sum(bool(place.quarantine_reason) for place in state.places)
            progress.update(
                task,
                description=f"{done} of {units} units"
                + (f", {found:,} found" if seeds else "")
                + (f", {count_of(quarantined, 'device')} quarantined" if quarantined else ""),
                completed=sum(unit.ended for unit in state.searched) if seeds else done,
                total=seeds or units,
            )

        yield show


class _AwayWarnings:
    """Warns once of each host that takes no part in the cluster."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._warned: set[str] = set()

    def show(self, state: FleetState) -> None:
        """Warn of hosts that were not warned of."""
        away = {place.host for place in state.places if place.away} - self._warned
        for host in sorted(away):
            self._warned.add(host)
            line = printable(
                f"warning: {host} takes no part in the cluster; it is used once it does"
            )
            self._console.print(line, style="yellow", markup=False, highlight=False, soft_wrap=True)


class _ProgressLines:
    """Prints a line now and then, where nobody looks at a terminal."""

    def __init__(self, console: Console, folder: Path) -> None:
        self._console, self._folder = console, folder
        self._warned = _AwayWarnings(console)
        self._last, self._again = "", time.monotonic() + LINE_SECONDS

    def show(self, state: FleetState) -> None:
        """Print how far it is, if that has changed and the last line is old."""
        self._warned.show(state)
        line = state.summary()
        if time.monotonic() < self._again or line == self._last:
            return
        self._last, self._again = line, time.monotonic() + LINE_SECONDS
        line = printable(f"{line}; see {self._folder / PAGE}")
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)
