"""Progress of a grid of runs: a line for each as it begins, and below it how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from edgeflare.bench.bench_runs import Watch
from edgeflare.bench.grid import BenchRun
from edgeflare.campaign.observer import Observer
from edgeflare.cli.progress import observe
from edgeflare.untrusted_text import printable


def watch_runs(console: Console, line: Callable[[BenchRun], str]) -> Watch:
    """Return what shows the progress of one run after the other; `line` announces each."""

    @contextmanager
    def watch(cell: BenchRun) -> Iterator[Observer]:
        say(console, line(cell))
        with observe(console) as observer:
            yield observer

    return watch


def say(console: Console, line: str) -> None:
    """Print a line as it is, however long, but for what does not print."""
    console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
