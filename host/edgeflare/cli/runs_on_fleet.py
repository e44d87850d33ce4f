"""A bench or a ranking on a fleet: each run is a unit, and the last unit sums them up."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from edgeflare.bench.grid import BenchRun, Grid
from edgeflare.cli.console import Console
from edgeflare.cli.fleet_options import FleetOptions, user_words
from edgeflare.cli.fleet_session import fleet_session, offered_line
from edgeflare.cli.interruptible import INTERRUPTED
from edgeflare.cli.matrix_options import is_matrix
from edgeflare.cli.progress import say
from edgeflare.cli.quiet import result
from edgeflare.errors import UserError
from edgeflare.fleet.fleet_work import FleetWork
from edgeflare.fleet.record.fleet_folder import FleetFolder, UnitEnding
from edgeflare.fleet.record.fleet_request import FleetRequest
from edgeflare.fleet.unit_runs import UnitRuns
from edgeflare.fleet.work.folder_archive import archive_folder
from edgeflare.fleet.work_units import DEVICE, RESUME, RUN, WorkUnit, shown_command
from edgeflare.models.pair import Pair
from edgeflare.record.folder import FolderKind, half_replaced, is_free, remove_ours
from edgeflare.record.folder_contents import FOLDER, begin_list, list_as

_REST: Final = "rest"
"""What sums the runs up: the whole command, which finds all of them done."""

_HOLDS: Final = {"bench": "bench", "rank": "ranking"}
"""What the folder is called, by the command."""

_SEPARATOR: Final = "+"
"""Character between the pair's and the run's part of a unit's name; no pair's folder has it."""


@dataclass(frozen=True, slots=True)
class RunsOnFleet:
    """The runs of a bench or a ranking, on a fleet.

    Attributes:
        command: command of `edgeflare`, bench or rank.
        grid: what is asked.
        pairs: on which the runs are.
        options: options of the fleet.
        out: the folder of the runs, and of what sums them up.
        resume: whether it goes on with what is done.
        words: what the user said of it, but for where it runs.

    """

    command: str
    grid: Grid
    pairs: Sequence[Pair]
    options: FleetOptions
    out: Path
    resume: bool
    words: tuple[str, ...]

    @classmethod
    def asked(
        cls,
        command: str,
        grid: Grid,
        pairs: Sequence[Pair],
        options: FleetOptions,
        out: Path,
        *,
        resume: bool,
    ) -> RunsOnFleet:
        """Return the runs that the command line of this process asks for.

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
        words = user_words(sys.argv[2:], without_flags=frozenset({"--quiet"}))
        asked = cls(command, grid, pairs, options, out, resume, words)
        asked._require_free()
        return asked

    def _require_free(self) -> None:
        """Refuse a folder that the runs must not be put into."""
        folder = FleetFolder.beside(self.out)
        if not self.resume and folder.has_work():
            raise UserError(
                f"{folder.path} holds work of a fleet already: go on with --resume, or name another"
                " folder with --out"
            )
        if self.resume and not folder.path.exists():
            raise UserError(f"there is no {folder.path} to go on with: leave out --resume")
        if self._is_made() and folder.ending(_REST) is None:
            raise UserError(
                f"{self.out} is not empty, and no fleet has made what is in it: go on with it"
                " without --fleet, or name another folder with --out"
            )

    def try_it(self) -> int:
        """Say what would be done, and return the exit code; no host is asked.

        Raises:
            UserError: the fleet has no such devices.

        """
        work, units = self._work(), self._units()
        for line in (
            offered_line(work, self.grid.device),
            f"{len(units)} units make a run each, and one more sums them up",
            f"each unit that makes a run: edgeflare {shown_command(units[0].command)}",
            f"would write {self.out} and {work.folder.path}; nothing was written",
        ):
            say(Console(), line)
        return 0

    def run(self) -> int:
        """Make the runs on the fleet and sum them up, print the result, and return the exit code.

        Raises:
            UserError: they cannot be made as they were asked for.
            InfrastructureError: the cluster is not reached, or no device is left.

        """
        with fleet_session(self._work(), "the units that run") as runs:
            ending = self._run_all(runs)
        if ending is None:
            units = self._units()
            done = sum(runs.folder.ending(unit.name) is not None for unit in units)
            say(
                Console(stderr=True),
                f"stopped: {done} of {len(units)} runs are done, in {runs.folder.path}; the same"
                " command with --resume goes on",
            )
            return INTERRUPTED
        for line in ending.printed.replace(RUN, str(self.out)).splitlines():
            say(Console(), line)
        result(self.out)
        return ending.exit_code

    def _run_all(self, runs: UnitRuns) -> UnitEnding | None:
        """Make all runs, sum them up, and put it all into the folder; None if that was stopped."""
        if not runs.run(self._units()):
            return None
        if runs.folder.ending(_REST) is None and runs.folder.backup(_REST) is None:
            runs.folder.keep_backup(_REST, self._gathered(runs.folder))
        if not runs.run([WorkUnit(_REST, self.grid.device, self._command(*self.words))]):
            return None
        if is_free(self.out):
            with runs.outputs[self.out].replaced() as made:
                shutil.copytree(runs.folder.unit(_REST), made, dirs_exist_ok=True)
        return runs.folder.ending(_REST)

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

    def _units(self) -> list[WorkUnit]:
        """Return a unit for each run."""
        return [
            WorkUnit(
                _unit_name(cell),
                self.grid.device,
                self._command("--only", cell.run.as_posix(), "--quiet", *self.words),
            )
            for cell in self._cells()
        ]

    def _command(self, *more: str) -> tuple[str, ...]:
        # Ours come first, since a -- may be among the user's.
        return (self.command, "--device", DEVICE, "--out", RUN, RESUME, *more)

    def _work(self) -> FleetWork:
        classes = (self.grid.device,)
        pairs = (f"{pair.folder_name} {pair.fingerprint()}" for pair in self.pairs)
        return self.options.work(
            classes,
            FleetRequest(classes, (self.command, *self.words), tuple(pairs)),
            FleetFolder.beside(self.out),
            resume=self.resume,
            places=() if self._is_made() else (self.out,),
            kind=FolderKind(_HOLDS[self.command]),
        )

    def _is_made(self) -> bool:
        return not is_free(self.out) and half_replaced(self.out) is None


def _unit_name(cell: BenchRun) -> str:
    return cell.run.as_posix().replace("/", _SEPARATOR, 1)
