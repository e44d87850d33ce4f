"""The progress of all hosts of a fleet, in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console as RichConsole
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from edgeflare.fleet.record.fleet_state import FleetState


@contextmanager
def shown_fleet(console: RichConsole) -> Iterator[Callable[[FleetState], None]]:
    """Show one progress bar for all hosts; yields what is told of each change."""
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console
    ) as progress:
        task = progress.add_task("joining the cluster", total=None)

        def show(state: FleetState) -> None:
            quarantined = sum(bool(place.quarantined) for place in state.places)
            lost = f", {quarantined} devices quarantined" if quarantined else ""
            seeds = sum(unit.seeds for unit in state.searched)
            done = sum(unit.status == "done" for unit in state.units)
            progress.update(
                task,
                description=f"{state.summary()}{lost}",
                completed=sum(unit.ended for unit in state.searched) if seeds else done,
                total=seeds or len(state.units),
            )

        yield show
