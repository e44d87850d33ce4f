"""Options of commands that run on a fleet, and what of a command its hosts are told."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from edgeflare.errors import UserError
from edgeflare.fleet.cluster.ray_cluster import LOCAL
from edgeflare.fleet.fleet_file import local_fleet, read_fleet
from edgeflare.fleet.fleet_work import FleetWork
from edgeflare.fleet.record.fleet_folder import FleetFolder
from edgeflare.fleet.record.fleet_request import FleetRequest
from edgeflare.record.folder import FolderKind
from edgeflare.run.run_directory import RUN

_FLEET = "On many hosts"

FleetAddress = Annotated[
    str | None,
    typer.Option(
        "--fleet",
        metavar="ADDRESS|local",
        help="Run on the hosts of a Ray cluster, whose head is at HOST:PORT; local is a cluster of "
        "this host alone. --device is then a class of devices (docs/fleet.md).",
        rich_help_panel=_FLEET,
    ),
]
FleetFile = Annotated[
    Path | None,
    typer.Option(
        "--fleet-file",
        metavar="FILE",
        help="A fleet.toml: hosts, and the devices of each by class.",
        rich_help_panel=_FLEET,
    ),
]
UnitSeeds = Annotated[
    int | None,
    typer.Option(
        "--unit-seeds",
        min=1,
        metavar="N",
        help="How many seeds a unit has, which one device searches in one go: best is what takes "
        "it 5 to 10 minutes. By default as many as give each device four units.",
        rich_help_panel=_FLEET,
    ),
]
LocalDevices = Annotated[
    int,
    typer.Option(
        "--fleet-devices",
        min=1,
        max=1000,
        metavar="N",
        help="With --fleet local: how many devices of each class work at once, where they are "
        "emulations.",
        rich_help_panel=_FLEET,
    ),
]


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """Whether a command runs on many hosts, and on which."""

    fleet: FleetAddress = None
    fleet_file: FleetFile = None
    fleet_devices: LocalDevices = 1

    def require_complete(self) -> None:
        """Refuse options of a fleet without one, and a cluster without its devices.

        Raises:
            UserError: it is so.

        """
        if self.fleet == "":
            raise UserError("--fleet names no cluster: give HOST:PORT of its head, or local")
        if self.fleet == LOCAL and self.fleet_file is not None:
            raise UserError(
                "--fleet local is a cluster of this host alone: leave out --fleet-file, or give the"
                " HOST:PORT of a head"
            )
        if self.fleet is None and self != FleetOptions():
            raise UserError("--fleet-file and --fleet-devices belong to --fleet")
        if self.fleet_file is not None and self.fleet_devices != FleetOptions().fleet_devices:
            raise UserError(
                "--fleet-devices is for --fleet local: leave it out, since --fleet-file says it"
            )
        if self.fleet not in (None, LOCAL) and self.fleet_file is None:
            raise UserError(
                f"--fleet {self.fleet} has to know the devices of its hosts: add --fleet-file FILE"
            )

    def work(
        self,
        classes: tuple[str, ...],
        request: FleetRequest,
        folder: FleetFolder,
        *,
        resume: bool = False,
        overwrite: bool = False,
        places: tuple[Path, ...] = (),
        kind: FolderKind = RUN,
    ) -> FleetWork:
        """Return what a command does, with the fleet that it does it on; see `FleetWork`.

        Args:
            classes: what `--device` names.
            request: what is asked, by which is known what may go on.
            folder: folder of the fleet's work.
            resume: whether it goes on with what is there.
            overwrite: whether it replaces what is there.
            places: folders that it is put into in the end.
            kind: kind of the folders that are made.

        Raises:
            UserError: somebody has changed a run that is to be gone on with, or `fleet.toml` says
                what it must not.

        """
        if self.fleet_file is not None:
            fleet = read_fleet(self.fleet_file)
        else:
            fleet = local_fleet(classes, self.fleet_devices)
        if resume and folder.is_of(request):
            folder.output.require_unchanged(places)
        return FleetWork(
            self.fleet or LOCAL,
            fleet,
            classes,
            request,
            folder,
            resume=resume,
            overwrite=overwrite,
            places=places,
            kind=kind,
        )


_WITH_VALUE: Final = frozenset(
    {"--fleet", "--fleet-file", "--unit-seeds", "--fleet-devices", "--out", "--device"}
)
_FLAGS: Final = frozenset({"--resume", "--overwrite", "--dry-run"})


def user_words(
    arguments: Sequence[str],
    *,
    without: Container[str] = (),
    without_flags: Container[str] = (),
) -> tuple[str, ...]:
    """Return what of a command's arguments its units have too: not where it runs, nor its folder.

    Args:
        arguments: arguments of the program, as it was called, behind the name of the command.
        without: further options that units have not, which take a value.
        without_flags: and those that take none.

    """
    kept: list[str] = []
    left = list(arguments)
    while left:
        one = left.pop(0)
        if one == "--":
            return (*kept, one, *left)
        name, separator, _ = one.partition("=")
        if name in _WITH_VALUE or name in without:
            if not separator:
                del left[:1]
        elif one not in _FLAGS and one not in without_flags:
            kept.append(one)
    return tuple(kept)
