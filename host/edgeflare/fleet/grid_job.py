"""A bench or a ranking: each run is a unit, and the last unit sums them up."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from edgeflare.bench.grid import BenchRun, Grid
from edgeflare.errors import UserError
from edgeflare.fleet.fleet_job import FleetJob, offered_line
from edgeflare.fleet.record.fleet_folder import FleetFolder, UnitEnding
from edgeflare.fleet.record.fleet_state import FleetRequest
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
            f"{len(units)} units make a run each, and one more sums them up",
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
