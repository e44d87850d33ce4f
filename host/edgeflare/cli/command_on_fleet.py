"""A command on a fleet: itself, on one device of each class that `--device` names."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from rich.markup import escape

from edgeflare.cli.console import Console
from edgeflare.cli.fleet_options import FleetOptions, user_words
from edgeflare.cli.fleet_session import UNDONE, fleet_session, saying_where
from edgeflare.cli.interruptible import INTERRUPTED
from edgeflare.cli.matrix_options import is_matrix
from edgeflare.cli.quiet import result
from edgeflare.cli.replay_launch import refuse_as_target
from edgeflare.cli.run_options import RunFolder
from edgeflare.errors import UserError
from edgeflare.fleet.fleet_work import FleetWork
from edgeflare.fleet.record.fleet_folder import FleetFolder
from edgeflare.fleet.record.fleet_request import FleetRequest
from edgeflare.fleet.unit_runs import UnitRuns
from edgeflare.fleet.work.folder_archive import archive_folder
from edgeflare.fleet.work_units import DEVICE, RESUME, RUN, WorkUnit, given_run, shown_command
from edgeflare.regular_file import read_regular
from edgeflare.run.run_directory import (
    CONFORM_DOCUMENT,
    DOCUMENT,
    MOST_BYTES,
    SURVEY_DOCUMENT,
    RunDirectory,
)
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


@dataclass(frozen=True, slots=True)
class CommandOnFleet:
    """A command that makes a run directory, on one device of each of some classes.

    Attributes:
        classes: classes of devices.
        command: command of each unit; see `filled_command`.
        options: options of the fleet.
        folder: whether it begins anew, replaces what is there or goes on.
        out: the run directory; of several classes, the folder that has one of each.
        told: what decides what units do beside their command, such as the pair.
        given: archived run directories, by the word that stands for each in the command.

    """

    classes: tuple[str, ...]
    command: tuple[str, ...]
    options: FleetOptions
    folder: RunFolder
    out: Path
    told: tuple[str, ...]
    given: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def units(self) -> tuple[WorkUnit, ...]:
        """One unit for each class, named after it."""
        named = class_names(self.classes)
        return tuple(WorkUnit(name, one, self.command) for one, name in named.items())

    @property
    def fleet_folder(self) -> FleetFolder:
        """What comes of the units, beside what is made."""
        return FleetFolder.beside(self.out)

    @property
    def places(self) -> tuple[Path, ...]:
        """The run directories that what units make replaces."""
        return tuple(map(self.place, self.units))

    @property
    def request(self) -> FleetRequest:
        """What is asked, by which is known what may go on."""
        return FleetRequest(self.classes, self.command, self.told)

    @property
    def goes_on(self) -> str:
        """What the user types to go on after it was stopped."""
        return f"the same command with --out {self.out} --resume"

    def work(self) -> FleetWork:
        """Return what is done, on which hosts.

        Raises:
            UserError: `fleet.toml` says what it must not.

        """
        return self.options.work(
            self.classes,
            self.request,
            self.fleet_folder,
            resume=self.folder.resume,
            overwrite=self.folder.overwrite,
            places=self.places,
        )

    def look_lines(self) -> list[str]:
        """Return what would be done, a line each; no host is asked.

        Raises:
            UserError: the fleet has no such devices.

        """
        work = self.work()
        lines = []
        for one in self.classes:
            places = work.fleet.places([one])
            hosts = ", ".join(dict.fromkeys(place.host for place in places))
            lines.append(f"devices of the class {one}: {len(places)}, on {hosts}")
        return [
            *lines,
            f"on one device of each class: edgeflare {shown_command(self.command)}",
            f"would write {self.out} and {work.folder.path}; nothing was written",
        ]

    def begin(self, runs: UnitRuns) -> None:
        """Hand on what units are given, before any of them begins."""
        runs.given.update(self.given)
        runs.goes_on = self.goes_on

    def place(self, unit: WorkUnit) -> Path:
        """Return where what a unit made comes to lie."""
        return self.out / unit.name if len(self.classes) > 1 else self.out

    def put(self, unit: WorkUnit, runs: UnitRuns) -> None:
        """Put what a unit made into its place, instead of what is there."""
        claimed = runs.outputs[self.place(unit)]
        runs.folder.output.put(claimed, runs.folder.unit(unit.name))

    def is_put(self, unit: WorkUnit) -> bool:
        """Tell whether what a unit made lies in its place already, and stays as it is."""
        return self.fleet_folder.output.is_made(self.place(unit))

    def result(self, place: Path) -> Path:
        """Return what `--quiet` names of what lies in a place."""
        return place


def command_on_fleet(
    asked: AskedOfEach, devices: Sequence[str] | None, options: FleetOptions, folder: RunFolder
) -> CommandOnFleet:
    """Return a command that makes a run directory, with the user's own words for each class.

    Args:
        asked: the command.
        devices: what `--device` names: classes.
        options: options of the fleet.
        folder: where the runs go.

    Raises:
        UserError: `--device` names no classes, or what is there must not be written over.

    """
    classes = fleet_classes(devices)
    out = place_of(folder, asked.of, classes)
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
    return CommandOnFleet(classes, (*command, *words), options, folder, out, tuple(told), given)


def fleet_classes(devices: Sequence[str] | None) -> tuple[str, ...]:
    """Return the device classes that `--device` names.

    Raises:
        UserError: it names none, one twice, or all kernel sets of a device.

    """
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
    for one in devices:
        if devices.count(one) > 1:
            raise UserError(f"--device {one} is given twice: on a fleet, name each class once")
    return tuple(devices)


def class_names(classes: Sequence[str]) -> dict[str, str]:
    """Return a name for the folder of each class; of `adb://…` it is a plain one."""
    names: dict[str, str] = {}
    for one in classes:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", one).strip("-.") or "class"
        choices = (plain, *(f"{plain}-{n}" for n in range(2, len(classes) + 1)))
        names[one] = next(name for name in choices if name not in names.values())
    return names


def place_of(folder: RunFolder, name: str, classes: Sequence[str]) -> Path:
    """Return where a command on a fleet writes; by default a new folder in runs/ of that name.

    Args:
        folder: what the user said of it.
        name: name of the command and what it works on.
        classes: classes of devices.

    Raises:
        UserError: what is there must not be written over.

    """
    folder.require_one_way()
    out = folder.out or Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    if folder.resume:
        if not (left := FleetFolder.beside(out).path).is_dir():
            raise UserError(f"there is no {left} to go on with: leave out --resume")
        return out
    if len(classes) == 1:
        RunDirectory.check(out, overwrite=folder.overwrite)
        return out
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file: name a folder with --out")
    places = [out / one for one in class_names(classes).values()]
    for one in places:
        RunDirectory.check(one, overwrite=folder.overwrite)
    if out.is_dir() and any(out.iterdir()) and not any(one.is_dir() for one in places):
        raise UserError(
            f"{out} is neither empty nor of the runs of these classes: name another folder with"
            " --out"
        )
    return out


def archived_run(run: Path) -> bytes:
    """Return a run directory as bytes, to be sent along.

    Raises:
        UserError: there is nothing in it.

    """
    archived = archive_folder(run)
    if archived is None:
        raise UserError(f"{run} holds no run")
    return archived


def digest_of(*files: Path) -> str:
    """Return the sha256 of some files of a run; those that are not there count too."""
    digest = hashlib.sha256()
    for file in files:
        content = read_regular(file, MOST_BYTES) if file.is_file() else b""
        digest.update(f"{file.name} {len(content)} ".encode() + content)
    return digest.hexdigest()


def words_without(words: Sequence[str], run: Path) -> tuple[str, ...]:
    """Return a command's words without the argument that names a run."""
    at = next(at for at, word in enumerate(words) if Path(word) == run)
    return (*words[:at], *words[at + 1 :])


def look_at_fleet(asked: CommandOnFleet) -> int:
    """Print what a command would do on a fleet, and return the exit code; no host is asked.

    Raises:
        UserError: the fleet has no such devices.

    """
    for line in asked.look_lines():
        Console().print(printable(line), markup=False, highlight=False, soft_wrap=True)
    return 0


def run_on_fleet(asked: CommandOnFleet) -> int:
    """Run a command on a fleet, print what its units printed, and return the worst exit code.

    Raises:
        UserError: a unit's command has to be corrected, or the fleet's folder holds other work.
        InfrastructureError: the cluster is not reached, or no device is left.

    """
    work = asked.work()
    work.fleet.places(work.classes)  # which may be refused, before anything is shown
    with fleet_session(work, "the units that run, and keeping what is done") as runs:
        asked.begin(runs)
        kept = {
            unit.name
            for unit in asked.units
            if runs.folder.ending(unit.name) is not None and asked.is_put(unit)
        }
        try:
            ended = runs.run(asked.units)
        except UNDONE as lost:
            if not _put_all(asked, kept, runs):
                raise
            raise saying_where(lost, asked.out) from None
        _put_all(asked, kept, runs)
    code = _print_endings(asked)
    if ended:
        return code
    sys.stderr.write(f"stopped; {for_terminal(asked.goes_on)} goes on\n")
    return INTERRUPTED


def _put_all(asked: CommandOnFleet, kept: Collection[str], runs: UnitRuns) -> bool:
    """Put what units have made into its place, but for those of earlier commands that lie there.

    Of a unit that is not done, that is what its last backup has.

    Returns:
        Whether there is anything.

    """
    folder, found = asked.fleet_folder, bool(kept)
    for unit in asked.units:
        backup = folder.backup(unit.name)
        if backup is not None and folder.ending(unit.name) is None:
            folder.keep_unit(unit.name, backup, None)
        if folder.unit(unit.name).is_dir() and unit.name not in kept:
            asked.put(unit, runs)
            found = True
    return found


def _print_endings(asked: CommandOnFleet) -> int:
    """Print what the units that are done printed, and return the worst of their exit codes."""
    worst = 0
    for unit in asked.units:
        ending = asked.fleet_folder.ending(unit.name)
        if ending is None:
            continue
        place = asked.place(unit)
        if len(asked.classes) > 1:
            Console(stderr=True).print(f"[bold]{escape(printable(unit.device_class))}[/]")
        sys.stdout.write(for_terminal(ending.printed.replace(RUN, str(place))))
        sys.stdout.flush()
        result(asked.result(place))
        worst = max(worst, ending.exit_code)
    return worst
