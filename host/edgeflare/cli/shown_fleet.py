"""The progress of all hosts of a fleet, in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console as RichConsole
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from edgeflare.fleet.record.fleet_state import FleetState


@contextmanager
def shown_fleet(console: RichConsole) -> Iterator[Callable[[FleetState], None]]:
    """Show one progress bar for all hosts; yields what is told of each change."""
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
