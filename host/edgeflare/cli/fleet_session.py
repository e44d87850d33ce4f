"""A command's work on a fleet: the cluster joined, the progress shown, Ctrl-C heeded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from edgeflare.cli.fleet_progress import fleet_progress
from edgeflare.cli.interruptible import interruptible
from edgeflare.errors import EdgeFlareError, InfrastructureError, UserError
from edgeflare.fleet.opened_fleet import FleetWork, opened_fleet
from edgeflare.fleet.unit_runs import UnitRuns

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
