"""`--only`: one run of those that a bench or a ranking makes, at its place and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from edgeflare.bench.bench_runs import run_grid
from edgeflare.bench.grid import Grid
from edgeflare.cli.console import Console
from edgeflare.cli.interruptible import INTERRUPTED, interruptible, resumable_work
from edgeflare.cli.progress import watch_runs
from edgeflare.cli.quiet import result
from edgeflare.models.pair import Pair

OnlyRun = Annotated[
    str | None,
    typer.Option(
        "--only",
        metavar="NAME/STRATEGY-RNGSEED",
        help="Make this run alone, at its place in --out. Without --only and with --resume, the "
        "same command takes it as done.",
    ),
]


def make_only_run(grid: Grid, pairs: Sequence[Pair], out: Path, *, chains: int) -> int:
    """Make the one run that a grid is left with, and return the exit code.

    Args:
        grid: grid of one run.
        pairs: one of which is searched; the others stay closed.
        out: the folder of all runs.
        chains: the most chains that are open at once.

    Raises:
        UserError: a pair is not what it should be, or `out` must not be written to.
        InfrastructureError: the device or a worker process is lost for good.

    """
    watch = watch_runs(Console(stderr=True), lambda cell: f"run {cell.run}")
    with resumable_work(), interruptible() as interrupt:
        runs = run_grid(grid, pairs, out, chains=chains, watch=watch, interrupt=interrupt)
        for cell, _ in runs:
            result(out / cell.run)
    return INTERRUPTED if interrupt.asked() else 0
