"""A command's work on a fleet: the cluster joined, the progress shown, Ctrl-C heeded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from edgeflare.cli.console import Console
from edgeflare.cli.interruptible import interruptible
from edgeflare.errors import EdgeFlareError, InfrastructureError, UserError
from edgeflare.fleet.fleet_work import FleetWork, opened_fleet
from edgeflare.fleet.record.fleet_folder import PAGE
from edgeflare.fleet.record.fleet_state import FleetState
from edgeflare.fleet.unit_runs import UnitRuns
from edgeflare.untrusted_text import printable

LINE_SECONDS: Final = 30.0
"""Seconds between two lines of progress; a unit takes minutes."""

UNDONE: Final = (EdgeFlareError, OSError)
"""What ends a command before all is done; what is done is kept, and may be gone on with."""


@contextmanager
def fleet_session(work: FleetWork, stopping: str) -> Iterator[UnitRuns]:
    """Yield what runs units on a fleet.

    Args:
        work: what is done.
        stopping: what is still done after Ctrl-C, in words.

    Raises:
        UserError: as `opened_fleet` raises it.
        InfrastructureError: likewise, or a disk is full; says how to go on.

    """
    with (
        interruptible(stopping) as interrupt,
        fleet_progress(work.folder.path) as shown,
        opened_fleet(work, stopped=interrupt.asked, urgent=interrupt.urgent, shown=shown) as runs,
    ):
        try:
            yield runs
        except (InfrastructureError, OSError) as lost:
            on = "" if runs.goes_on in str(lost) else f"; {runs.goes_on} goes on"
            raise InfrastructureError(f"{lost}{on}") from lost


def saying_where(lost: Exception, out: Path) -> EdgeFlareError:
    """Return what has ended a command, with where that lies which was done.

    A command that has to be corrected is told only what is wrong with it.
    """
    if isinstance(lost, UserError):
        return lost
    return InfrastructureError(f"{lost}; what is done is in {out}")


def offered_line(work: FleetWork, device_class: str) -> str:
    """Return how many devices of a class there are, and on which hosts.

    Raises:
        UserError: the fleet has none.

    """
    places = work.fleet.places([device_class])
    hosts = ", ".join(dict.fromkeys(place.host for place in places))
    return f"{len(places)} devices of the class {device_class}, on {hosts}"


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
            quarantined = sum(bool(place.quarantined) for place in state.places)
            progress.update(
                task,
                description=f"{done} of {units} units"
                + (f", {found:,} found" if seeds else "")
                + (f", {quarantined} devices quarantined" if quarantined else ""),
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
