"""A command on a fleet: itself on one device of each class that `--device` names, or its runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.markup import escape

from edgeflare.bench.grid import Grid, run_grid
from edgeflare.cli.console import Console
from edgeflare.cli.fleet_options import FleetOptions, user_words
from edgeflare.cli.fleet_session import look_at_job, run_job
from edgeflare.cli.interruptible import INTERRUPTED, interruptible, resumable_work
from edgeflare.cli.quiet import result
from edgeflare.cli.run_options import RunFolder, is_matrix, refuse_as_target
from edgeflare.errors import UserError
from edgeflare.fleet.command_job import (
    AdditionJob,
    CommandJob,
    GridJob,
    archived_run,
    command_place,
    digest_of,
)
from edgeflare.fleet.work_units import DEVICE, RESUME, RUN, given_run
from edgeflare.models.pair import Pair
from edgeflare.pages.facts import count_of
from edgeflare.progress import say, watch_runs
from edgeflare.run.run_directory import CONFORM_DOCUMENT, DOCUMENT, SURVEY_DOCUMENT
from edgeflare.untrusted_text import for_terminal, printable

_RUN: Final = given_run("replayed")
_BASELINE: Final = given_run("baseline")

ANEW: Final = "--overwrite"
"""What an attempt is told that follows another one, where the command cannot resume."""


@dataclass(frozen=True, slots=True)
class AskedOfEach:
    """What is asked of a device of each class.

    Attributes:
        name: name of the command.
        of: names the folder of what is made, where the user does not.
        told: what decides the outcome beside the user's words and the runs, such as the models.
        run: the run that the command's argument names; None for none.
        baseline: run that `--baseline` names; None for none.
        again: what an attempt is told that follows another one.

    """

    name: str
    of: str
    told: tuple[str, ...] = ()
    run: Path | None = None
    baseline: Path | None = None
    again: str = RESUME


def command_on_fleet(
    asked: AskedOfEach, devices: Sequence[str] | None, options: FleetOptions, folder: RunFolder
) -> CommandJob:
    """Return a command that makes a run directory, with the user's own words for each class.

    Args:
        asked: the command.
        devices: what `--device` names: classes.
        options: options of the fleet.
        folder: where the runs go.

    Raises:
        UserError: `--device` names no classes, or what is there must not be written over.

    """
    classes = _fleet_classes(devices)
    folder.require_one_way()
    resume, overwrite = folder.resume, folder.overwrite
    out = command_place(folder.out, asked.of, classes, resume=resume, overwrite=overwrite)
    words = user_words(sys.argv[2:], without={"--baseline"}, without_flags={"--quiet"})
    command = [asked.name, "--device", DEVICE, "--out", RUN, asked.again]
    given, told = {}, list(asked.told)
    for word, option, run in (
        (_RUN, "--run", asked.run),
        (_BASELINE, "--baseline", asked.baseline),
    ):
        if run is None:
            continue
        refuse_as_target(out, "what is replayed, or the baseline", run)
        given[word] = archived_run(run)
        told.append(digest_of(run / DOCUMENT, run / CONFORM_DOCUMENT, run / SURVEY_DOCUMENT))
        command += [f"{option}-lies-at", str(run)]
        if word == _RUN:
            command.insert(1, word)
            words = words_without(words, run)
        else:
            command += [option, word]
    return CommandJob(
        out=out,
        hosts=options.hosts,
        resume=resume,
        overwrite=overwrite,
        classes=classes,
        command=(*command, *words),
        told=tuple(told),
        given=given,
    )


def add_on_fleet(
    name: str,
    run: Path,
    devices: Sequence[str] | None,
    options: FleetOptions,
    added: tuple[str, ...],
) -> int:
    """Run a command that adds files to a run, on a device of a fleet, and return the exit code.

    Args:
        name: name of the command.
        run: the run directory.
        devices: what `--device` names: one class.
        options: options of the fleet.
        added: what the command adds to a run, as patterns; the first one is its document.

    Raises:
        UserError: several classes are named, or as `run_on_fleet` raises it.

    """
    classes = _fleet_classes(devices)
    if len(classes) > 1:
        raise UserError(
            f"{name} adds to {run} what it sees on one device: name one class with --device"
        )
    words = words_without(user_words(sys.argv[2:], without_flags={"--quiet"}), run)
    job = AdditionJob(
        out=run,
        hosts=options.hosts,
        classes=classes,
        command=(name, RUN, "--device", DEVICE, *words),
        told=(digest_of(run / DOCUMENT, run / added[0]),),
        name=name,
        added=added,
    )
    return run_on_fleet(job.going_on())


def run_on_fleet(job: CommandJob) -> int:
    """Run a command on a fleet, print what its units printed, and return the worst exit code.

    Raises:
        UserError: the fleet's folder holds other work.

    """
    complete = run_job(job).complete
    code = _print_endings(job)
    if complete:
        return code
    sys.stderr.write(f"stopped; {for_terminal(job.goes_on)} goes on\n")
    return INTERRUPTED


def _print_endings(job: CommandJob) -> int:
    """Print what the units that are done printed, and return the worst of their exit codes."""
    worst = 0
    for unit in job.units:
        ending = job.folder.ending(unit.name)
        if ending is None:
            continue
        place = job.place(unit)
        if len(job.classes) > 1:
            Console(stderr=True).print(f"[bold]{escape(printable(unit.device_class))}[/]")
        sys.stdout.write(for_terminal(ending.printed.replace(RUN, str(place))))
        sys.stdout.flush()
        result(job.result(place))
        worst = max(worst, ending.exit_code)
    return worst


def _fleet_classes(devices: Sequence[str] | None) -> tuple[str, ...]:
    """Return the device classes that `--device` names."""
    if not devices:
        raise UserError(
            "--fleet has to know the class of devices: name it with --device CLASS, such as"
            " emulated-builtin"
        )
    if is_matrix(devices):
        raise UserError(
            f"--fleet takes classes of devices, and {devices[0]} is every kernel set of one: name"
            " the classes, with --device for each"
        )
    for device in devices:
        if devices.count(device) > 1:
            raise UserError(f"--device {device} is given twice: on a fleet, name each class once")
    return tuple(devices)


def words_without(words: Sequence[str], run: Path) -> tuple[str, ...]:
    """Return a command's words without the argument that names a run."""
    at = next(at for at, word in enumerate(words) if Path(word) == run)
    return (*words[:at], *words[at + 1 :])


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
            f"stopped: {done} of {count_of(len(units), 'run')} are done, in {job.folder.path};"
            f" {job.goes_on} goes on",
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
    console = Console(stderr=True)
    watch = watch_runs(console, lambda cell: f"run {cell.run}")
    with resumable_work(), interruptible() as interrupt:
        made = list(run_grid(grid, pairs, out, chains=chains, watch=watch, interrupt=interrupt))
    if made:
        ((cell, _),) = made
        result(out / cell.run)
        return 0
    say(console, f"stopped: {grid.only} is not done; the same command with --resume goes on")
    return INTERRUPTED
