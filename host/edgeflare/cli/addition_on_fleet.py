"""A command on a fleet that adds files to a run which is there, such as its explanations."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from edgeflare.cli.command_on_fleet import (
    CommandOnFleet,
    archived_run,
    digest_of,
    fleet_classes,
    run_on_fleet,
    words_without,
)
from edgeflare.cli.fleet_options import FleetOptions, user_words
from edgeflare.cli.run_options import RunFolder
from edgeflare.errors import UserError
from edgeflare.fleet.record.fleet_folder import FleetFolder
from edgeflare.fleet.unit_runs import UnitRuns
from edgeflare.fleet.work_units import DEVICE, RUN, WorkUnit
from edgeflare.record.atomic_file import write_atomically
from edgeflare.regular_file import read_regular
from edgeflare.run.run_directory import DOCUMENT, MOST_BYTES, RunDirectory

_QUIET: Final = frozenset({"--quiet"})


@dataclass(frozen=True, slots=True)
class AdditionOnFleet(CommandOnFleet):
    """A command that adds files to a run, on one device of a class.

    Its unit works in a copy of the run, and what it has added is put into the run at the end.

    Attributes:
        name: name of the command, by which its fleet's folder is named.
        added: what it adds, as patterns; the first one is the document.

    """

    name: str = ""
    added: tuple[str, ...] = ()

    @property
    def fleet_folder(self) -> FleetFolder:
        """What comes of the unit: a run that a fleet has made has a folder already."""
        return FleetFolder.beside(self.out, self.name)

    @property
    def goes_on(self) -> str:
        """What the user types to go on after it was stopped."""
        return "the same command"

    def begin(self, runs: UnitRuns) -> None:
        """Have the unit's first attempt work in a copy of the run."""
        CommandOnFleet.begin(self, runs)
        (unit,) = self.units
        if runs.folder.ending(unit.name) is None and runs.folder.backup(unit.name) is None:
            runs.folder.keep_backup(unit.name, archived_run(self.out))

    @property
    def places(self) -> tuple[Path, ...]:
        """None: nothing of the run is replaced."""
        return ()

    def put(self, unit: WorkUnit, runs: UnitRuns) -> None:
        """Put what the unit has added into the run, and the document last, which names the rest."""
        directory, made = RunDirectory(self.out), runs.folder.unit(unit.name)
        last_first = reversed(self.added)
        for file in (file for pattern in last_first for file in sorted(made.glob(pattern))):
            written = directory.inside(file.relative_to(made).as_posix())
            write_atomically(written, read_regular(file, MOST_BYTES))

    def is_put(self, unit: WorkUnit) -> bool:
        """Tell whether the document of the unit lies in the run already."""
        made = self.fleet_folder.unit(unit.name) / self.added[0]
        return digest_of(made) == digest_of(self.out / made.name)

    def result(self, place: Path) -> Path:
        """Return what `--quiet` names: the document."""
        return place / self.added[0]


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
        InfrastructureError: as `run_on_fleet` raises it.

    """
    classes = fleet_classes(devices)
    if len(classes) > 1:
        raise UserError(
            f"{name} adds to {run} what it sees on one device: name one class with --device"
        )
    words = words_without(user_words(sys.argv[2:], without_flags=_QUIET), run)
    asked = AdditionOnFleet(
        classes,
        (name, RUN, "--device", DEVICE, *words),
        options,
        RunFolder(overwrite=True),
        run,
        (digest_of(run / DOCUMENT, run / added[0]),),
        name=name,
        added=added,
    )
    if _is_left(asked):
        asked = replace(asked, folder=RunFolder(resume=True))
    return run_on_fleet(asked)


def _is_left(asked: AdditionOnFleet) -> bool:
    """Tell whether the same command was lost on the same run, before its end was put there."""
    folder, (unit,) = asked.fleet_folder, asked.units
    done = folder.ending(unit.name) is not None
    return folder.is_of(asked.request) and not (done and asked.is_put(unit))
