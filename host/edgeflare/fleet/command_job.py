"""Jobs of commands: on one device of each of some classes, or on a grid of pairs and run seeds.

A command on devices makes a run directory, or adds to one. Of a bench or a ranking each run is a
unit, and the last unit sums them up.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Final

from edgeflare.bench.grid import BenchRun, Grid
from edgeflare.errors import UserError
from edgeflare.fleet.fleet_job import FleetJob, hosts_of, offered_line
from edgeflare.fleet.record.fleet_folder import FleetFolder, UnitEnding
from edgeflare.fleet.record.fleet_state import FleetRequest
from edgeflare.fleet.unit_runs import UnitRuns
from edgeflare.fleet.work.folder_archive import archive_folder
from edgeflare.fleet.work_units import DEVICE, RESUME, RUN, WorkUnit, shown_command
from edgeflare.models.pair import Pair
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder import FolderKind, half_replaced, is_free, new_folder, remove_ours
from edgeflare.record.folder_contents import FOLDER, begin_list, list_as
from edgeflare.regular_file import read_regular
from edgeflare.run.run_directory import MOST_BYTES, RunDirectory

_REST: Final = "rest"
"""What sums the runs up: the whole command, which finds all of them done."""

_HOLDS: Final = {"bench": "bench", "rank": "ranking"}
"""What the folder is called, by the command."""

_SEPARATOR: Final = "+"
"""Character between the pair's and the run's part of a unit's name; no pair's folder has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandJob(FleetJob):
    """A command that makes a run directory, on one device of each of some classes.

    Of several classes `out` has a run directory of each.

    Attributes:
        command: command of each unit; see `filled_command`.
        told: what decides what units do beside their command, such as the pair.
        given: archived run directories, by the word that stands for each in the command.

    """

    command: tuple[str, ...]
    told: tuple[str, ...] = ()
    given: Mapping[str, bytes] = field(default_factory=dict)

    stopping: ClassVar[str] = "the units that run, and keeping what is done"

    @property
    def request(self) -> FleetRequest:
        """What is asked, by which is known what may go on."""
        return FleetRequest(self.classes, self.command, self.told)

    @property
    def units(self) -> tuple[WorkUnit, ...]:
        """One unit for each class, named after it."""
        named = class_names(self.classes)
        return tuple(
            WorkUnit(name, device_class, self.command) for device_class, name in named.items()
        )

    @property
    def places(self) -> tuple[Path, ...]:
        """The run directories that what units make replaces."""
        return tuple(map(self.place, self.units))

    def place(self, unit: WorkUnit) -> Path:
        """Return where what a unit made comes to lie."""
        return self.out / unit.name if len(self.classes) > 1 else self.out

    def result(self, place: Path) -> Path:
        """Return what `--quiet` names of what lies in a place."""
        return place

    def look_lines(self) -> list[str]:
        """Return what would be done, a line each; no host is asked."""
        offered = [(class_, self.offered([class_])) for class_ in self.classes]
        return [
            *(
                f"devices of the class {device_class}: {len(on)}, on {hosts_of(on)}"
                for device_class, on in offered
            ),
            f"on one device of each class: edgeflare {shown_command(self.command)}",
            f"would write {self.out} and {self.folder.path}; nothing was written",
        ]

    def lying(self) -> Collection[str]:
        """Return the units whose results lie in their places already, and stay as they are."""
        ended = (unit for unit in self.units if self.folder.ending(unit.name) is not None)
        return {unit.name for unit in ended if self.is_put(unit)}

    def run_all(self, runs: UnitRuns) -> bool:
        """Run the command on a device of each class; whether all are done."""
        runs.given.update(self.given)
        return runs.run(self.units)

    def put_all(self, runs: UnitRuns, lying: Collection[str]) -> bool:
        """Put what units have made into its place, but for what lies there already.

        Of a unit that is not done, that is what its last backup has.
        """
        folder, found = self.folder, bool(lying)
        for unit in self.units:
            backup = folder.backup(unit.name)
            if backup is not None and folder.ending(unit.name) is None:
                folder.keep_unit(unit.name, backup, None)
            if folder.unit(unit.name).is_dir() and unit.name not in lying:
                self.put(unit, runs)
                found = True
        return found

    def put(self, unit: WorkUnit, runs: UnitRuns) -> None:
        """Put what a unit made into its place, instead of what is there."""
        runs.folder.output.put(runs.outputs[self.place(unit)], runs.folder.unit(unit.name))

    def is_put(self, unit: WorkUnit) -> bool:
        """Tell whether what a unit made lies in its place already, and stays as it is."""
        return self.folder.output.is_made(self.place(unit))


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditionJob(CommandJob):
    """A command that adds files to a run, on one device of a class.

    Its unit works in a copy of the run, and what it has added is put into the run at the end.

    Attributes:
        name: name of the command, by which its fleet's folder is named.
        added: what it adds, as patterns; the first one is the document.

    """

    name: str
    added: tuple[str, ...]

    @property
    def folder(self) -> FleetFolder:
        """What comes of the unit: a run that a fleet has made has a folder already."""
        return FleetFolder.beside(self.out, self.name)

    @property
    def goes_on(self) -> str:
        """What the user types to go on after it was stopped."""
        return "the same command"

    @property
    def places(self) -> tuple[Path, ...]:
        """None: nothing of the run is replaced."""
        return ()

    def result(self, place: Path) -> Path:
        """Return what `--quiet` names: the document."""
        return place / self.added[0]

    def run_all(self, runs: UnitRuns) -> bool:
        """Run the command, its first attempt in a copy of the run."""
        (unit,) = self.units
        if runs.folder.ending(unit.name) is None and runs.folder.backup(unit.name) is None:
            runs.folder.keep_backup(unit.name, archived_run(self.out))
        return CommandJob.run_all(self, runs)

    def put(self, unit: WorkUnit, runs: UnitRuns) -> None:
        """Put what the unit has added into the run, and the document last, which names the rest."""
        directory, made = RunDirectory(self.out), runs.folder.unit(unit.name)
        last_first = reversed(self.added)
        for file in (file for pattern in last_first for file in sorted(made.glob(pattern))):
            written = directory.inside(file.relative_to(made).as_posix())
            write_atomically(written, read_regular(file, MOST_BYTES))

    def is_put(self, unit: WorkUnit) -> bool:
        """Tell whether the document of the unit lies in the run already."""
        made = self.folder.unit(unit.name) / self.added[0]
        return digest_of(made) == digest_of(self.out / made.name)

    def going_on(self) -> AdditionJob:
        """Return the job: it goes on where it was lost before its end was put there."""
        (unit,) = self.units
        done = self.folder.ending(unit.name) is not None
        left = self.folder.is_of(self.request) and not (done and self.is_put(unit))
        return replace(self, resume=left, overwrite=not left)


def class_names(classes: Sequence[str]) -> dict[str, str]:
    """Return a name for the folder of each class; of `adb://…` it is a plain one."""
    names: dict[str, str] = {}
    for class_ in classes:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", class_).strip("-.") or "class"
        choices = (plain, *(f"{plain}-{n}" for n in range(2, len(classes) + 1)))
        names[class_] = next(name for name in choices if name not in names.values())
    return names


def command_place(
    out: Path | None, name: str, classes: Sequence[str], *, resume: bool, overwrite: bool
) -> Path:
    """Return where a command writes; by default a new folder in runs/ of that name.

    Args:
        out: what the user says of it; None for nothing.
        name: name of the command and what it works on.
        classes: classes of devices.
        resume: whether it goes on with what is there.
        overwrite: whether it replaces what is there.

    Raises:
        UserError: what is there must not be written over.

    """
    path = out or new_folder(name)
    if resume:
        if not (left := FleetFolder.beside(path).path).is_dir():
            raise UserError(f"there is no {left} to go on with: leave out --resume")
        return path
    if len(classes) == 1:
        RunDirectory.check(path, overwrite=overwrite)
        return path
    if path.exists() and not path.is_dir():
        raise UserError(f"{path} is a file: name a folder with --out")
    places = [path / class_name for class_name in class_names(classes).values()]
    for place in places:
        RunDirectory.check(place, overwrite=overwrite)
    if path.is_dir() and any(path.iterdir()) and not any(place.is_dir() for place in places):
        raise UserError(
            f"{path} is neither empty nor of the runs of these classes: name another folder with"
            " --out"
        )
    return path


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GridJob(FleetJob):
    """The runs of a bench or a ranking.

    Attributes:
        command: command of `edgeflare`, bench or rank.
        grid: what is asked.
        pairs: on which the runs are.
        words: what the user said of it, but for where it runs.

    """

    command: str
    grid: Grid
    pairs: Sequence[Pair]
    words: tuple[str, ...]

    @property
    def request(self) -> FleetRequest:
        """What is asked, by which is known what may go on."""
        pairs = (f"{pair.folder_name} {pair.fingerprint()}" for pair in self.pairs)
        return FleetRequest(self.classes, (self.command, *self.words), tuple(pairs))

    @property
    def places(self) -> tuple[Path, ...]:
        """The folder, unless all lies there."""
        return () if self._is_made() else (self.out,)

    @property
    def kind(self) -> FolderKind:
        """What the folder is."""
        return FolderKind(_HOLDS[self.command])

    @property
    def goes_on(self) -> str:
        """What the user types to go on after it was stopped."""
        return "the same command with --resume"

    @property
    def ending(self) -> UnitEnding | None:
        """What summed the runs up, and printed them; None before that."""
        return self.folder.ending(_REST)

    @property
    def units(self) -> list[WorkUnit]:
        """A unit for each run."""
        return [
            WorkUnit(
                _unit_name(cell),
                self.classes[0],
                self._command("--only", cell.run.as_posix(), "--quiet", *self.words),
            )
            for cell in self._cells()
        ]

    def require_free(self) -> None:
        """Refuse a folder that the runs must not be put into."""
        if not self.resume and self.folder.has_work():
            raise UserError(
                f"{self.folder.path} holds work of a fleet already: go on with --resume, or name"
                " another folder with --out"
            )
        if self.resume and not self.folder.path.exists():
            raise UserError(f"there is no {self.folder.path} to go on with: leave out --resume")
        if self._is_made() and self.ending is None:
            raise UserError(
                f"{self.out} is not empty, and no fleet has made what is in it: go on with it"
                " without --fleet, or name another folder with --out"
            )

    def look_lines(self) -> list[str]:
        """Return what would be done, a line each; no host is asked."""
        units = self.units
        return [
            offered_line(self),
            f"units that make a run each: {len(units)}, and one more sums them up",
            f"each unit that makes a run: edgeflare {shown_command(units[0].command)}",
            f"would write {self.out} and {self.folder.path}; nothing was written",
        ]

    def run_all(self, runs: UnitRuns) -> bool:
        """Make all runs, and sum them up; whether all is done."""
        if not runs.run(self.units):
            return False
        if self.ending is None and runs.folder.backup(_REST) is None:
            runs.folder.keep_backup(_REST, self._gathered(runs.folder))
        return runs.run([WorkUnit(_REST, self.classes[0], self._command(*self.words))])

    def put_all(self, runs: UnitRuns, lying: Collection[str]) -> bool:
        """Put all into the folder once it is summed up, since half of it says nothing."""
        del lying
        if self.ending is None:
            return False
        if is_free(self.out):
            with runs.outputs[self.out].replaced() as made:
                shutil.copytree(runs.folder.unit(_REST), made, dirs_exist_ok=True)
        return True

    def _gathered(self, folder: FleetFolder) -> bytes:
        """Return the archive of one folder that has all runs, each at its place."""
        whole = folder.inner("whole")
        if whole.exists():  # of a command that was killed
            remove_ours(whole)
        begin_list(whole, _HOLDS[self.command])
        for cell in self._cells():
            list_as(whole, cell.run.as_posix(), FOLDER)
            shutil.copytree(folder.unit(_unit_name(cell)) / cell.run, whole / cell.run)
        archived = archive_folder(whole)
        remove_ours(whole)
        if archived is None:
            raise UserError(f"{folder.path} has lost its runs: remove it, and begin again")
        return archived

    def _cells(self) -> list[BenchRun]:
        return [cell for pair in self.pairs for cell in self.grid.cells(pair)]

    def _command(self, *more: str) -> tuple[str, ...]:
        # Ours come first, since a -- may be among the user's.
        return (self.command, "--device", DEVICE, "--out", RUN, RESUME, *more)

    def _is_made(self) -> bool:
        return not is_free(self.out) and half_replaced(self.out) is None


def _unit_name(cell: BenchRun) -> str:
    return cell.run.as_posix().replace("/", _SEPARATOR, 1)
