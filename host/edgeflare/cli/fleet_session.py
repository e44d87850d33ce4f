"""A command's work on a fleet: the cluster joined, the progress shown, Ctrl-C heeded."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from edgeflare.cli.console import Console
from edgeflare.cli.interruptible import interruptible
from edgeflare.errors import EdgeFlareError, InfrastructureError, UserError
from edgeflare.fleet.opened_fleet import FleetWork, opened_fleet
from edgeflare.fleet.record.fleet_state import FleetState
from edgeflare.fleet.unit_runs import UnitRuns

UNDONE: Final = (EdgeFlareError, OSError, sqlite3.Error)
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
        _progress_shown() as shown,
        opened_fleet(work, stopped=interrupt.asked, urgent=interrupt.urgent, shown=shown) as runs,
    ):
        try:
            yield runs
        except (InfrastructureError, OSError, sqlite3.Error) as lost:
            on = "" if runs.goes_on in str(lost) else f"; {runs.goes_on} goes on"
            raise InfrastructureError(f"{lost}{on}") from lost


def saying_where(lost: Exception, out: Path) -> EdgeFlareError:
    """Return what has ended a command, with where that lies which was done."""
    kind = UserError if isinstance(lost, UserError) else InfrastructureError
    return kind(f"{lost}; what is done is in {out}")


def offered_line(work: FleetWork, device_class: str) -> str:
    """Return how many devices of a class there are, and on which hosts.

    Raises:
        UserError: the fleet has none.

    """
    places = work.fleet.places([device_class])
    hosts = ", ".join(dict.fromkeys(place.host for place in places))
    return f"{len(places)} devices of the class {device_class}, on {hosts}"


@contextmanager
def _progress_shown() -> Iterator[Callable[[FleetState], None]]:
    """Show one progress bar for all hosts; yields what is told of each change."""
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task("joining the cluster", total=None)

        def show(state: FleetState) -> None:
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
