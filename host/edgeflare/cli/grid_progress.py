"""Progress of a grid of runs: a line for each as it begins, and below it how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from edgeflare.bench.grid import Cell
from edgeflare.bench.running import Watch
from edgeflare.campaign.setting import Observer
from edgeflare.cli.progress import observe
from edgeflare.untrusted_text import printable


def watch_runs(console: Console, line: Callable[[Cell], str]) -> Watch:
    """Return what shows the progress of one run after the other; `line` announces each."""

    @contextmanager
    def watch(cell: Cell) -> Iterator[Observer]:
        say(console, line(cell))
        with observe(console) as observer:
            yield observer

    return watch


def say(console: Console, line: str) -> None:
    """Print a line as it is, however long, but for what does not print."""
    console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
