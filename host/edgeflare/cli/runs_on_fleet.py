"""A bench or a ranking as it was asked for: on a fleet, or by `--only` one of its runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from edgeflare.bench.grid import Grid, run_grid
from edgeflare.cli.console import Console
from edgeflare.cli.fleet_options import FleetOptions, user_words
from edgeflare.cli.fleet_session import look_at_job, run_job
from edgeflare.cli.interruptible import INTERRUPTED, interruptible, resumable_work
from edgeflare.cli.matrix_options import is_matrix
from edgeflare.cli.progress import say, watch_runs
from edgeflare.cli.quiet import result
from edgeflare.errors import UserError
from edgeflare.fleet.grid_job import GridJob
from edgeflare.fleet.work_units import RUN
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


def runs_on_fleet(
    command: str,
    grid: Grid,
    pairs: Sequence[Pair],
    options: FleetOptions,
    out: Path,
    *,
    resume: bool,
    dry_run: bool,
) -> int:
    """Make the runs on a fleet and sum them up, print the result, and return the exit code.

    Args:
        command: command of `edgeflare`, bench or rank.
        grid: what is asked.
        pairs: on which the runs are.
        options: options of the fleet.
        out: the folder of the runs, and of what sums them up.
        resume: whether it goes on with what is done.
        dry_run: say what would be done, and do nothing.

    Raises:
        UserError: a fleet cannot make them as they were asked for.
        InfrastructureError: the cluster is not reached, or no device is left.

    """
    options.require_complete()
    if grid.only is not None:
        raise UserError("--only makes one run, and --fleet shares out all: leave one out")
    if is_matrix((grid.device,)):
        raise UserError(
            f"--device {grid.device} is every kernel set of a device: name one class of devices"
        )
    words = user_words(sys.argv[2:], without_flags={"--quiet"})
    job = GridJob(
        out=out,
        hosts=options.hosts,
        classes=(grid.device,),
        resume=resume,
        command=command,
        grid=grid,
        pairs=pairs,
        words=words,
    )
    job.require_free()
    if dry_run:
        return look_at_job(job)
    complete, ending = run_job(job).complete, job.ending
    if not complete or ending is None:
        units = job.units
        done = sum(job.folder.ending(unit.name) is not None for unit in units)
        say(
            Console(stderr=True),
            f"stopped: {done} of {len(units)} runs are done, in {job.folder.path}; {job.goes_on}"
            " goes on",
        )
        return INTERRUPTED
    for line in ending.printed.replace(RUN, str(out)).splitlines():
        say(Console(), line)
    result(out)
    return ending.exit_code


def make_only_run(grid: Grid, pairs: Sequence[Pair], out: Path, *, chains: int) -> int:
    """Make the one run that a grid is left with, and return the exit code.

    Args:
        grid: grid of one run.
        pairs: one of which is searched; the others stay closed.
        out: the folder of all runs.
        chains: the most chains that are open at once.

    Raises:
        UserError: a pair is not what it should be, or `out` must not be written to.

    """
    watch = watch_runs(Console(stderr=True), lambda cell: f"run {cell.run}")
    with resumable_work(), interruptible() as interrupt:
        runs = run_grid(grid, pairs, out, chains=chains, watch=watch, interrupt=interrupt)
        for cell, _ in runs:
            result(out / cell.run)
    return INTERRUPTED if interrupt.asked() else 0
