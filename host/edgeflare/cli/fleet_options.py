"""Options of commands that run on a fleet, and what of a command its hosts are told."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from edgeflare.cli.further_options import FLEET
from edgeflare.errors import UserError

if TYPE_CHECKING:  # the room is imported by commands that run on a fleet
    from edgeflare.fleet.fleet_file import FleetHosts


FleetAddress = Annotated[
    str | None,
    typer.Option(
        "--fleet",
        metavar="ADDRESS|local",
        help="Run on the hosts of a Ray cluster, whose head is at HOST:PORT; local is a cluster of "
        "this host alone. --device is then a class of devices (docs/fleet.md).",
        rich_help_panel=FLEET,
    ),
]
FleetFile = Annotated[
    Path | None,
    typer.Option(
        "--fleet-file",
        metavar="FILE",
        help="A fleet.toml: hosts, and the devices of each by class.",
        rich_help_panel=FLEET,
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
        rich_help_panel=FLEET,
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
        rich_help_panel=FLEET,
    ),
]


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """Whether a command runs on many hosts, and on which."""

    fleet: FleetAddress = None
    fleet_file: FleetFile = None
    fleet_devices: LocalDevices = 1

    def require_complete(self) -> None:
        """Refuse options of a fleet without one, and a cluster without its devices."""
        if self == FleetOptions():
            return
        from edgeflare.fleet.cluster.ray_cluster import LOCAL  # noqa: PLC0415 - for a fleet alone

        if self.fleet == "":
            raise UserError("--fleet names no cluster: give HOST:PORT of its head, or local")
        if self.fleet == LOCAL and self.fleet_file is not None:
            raise UserError(
                "--fleet local is a cluster of this host alone: leave out --fleet-file, or give the"
                " HOST:PORT of a head"
            )
        if self.fleet is None:
            raise UserError("--fleet-file and --fleet-devices belong to --fleet")
        if self.fleet_file is not None and self.fleet_devices != FleetOptions().fleet_devices:
            raise UserError(
                "--fleet-devices is for --fleet local: leave it out, since --fleet-file says it"
            )
        if self.fleet not in (None, LOCAL) and self.fleet_file is None:
            raise UserError(
                f"--fleet {self.fleet} has to know the devices of its hosts: add --fleet-file FILE"
            )

    @property
    def hosts(self) -> FleetHosts:
        """Where the command runs."""
        from edgeflare.fleet.cluster.ray_cluster import LOCAL  # noqa: PLC0415 - for a fleet alone
        from edgeflare.fleet.fleet_file import FleetHosts  # noqa: PLC0415

        return FleetHosts(self.fleet or LOCAL, self.fleet_file, self.fleet_devices)


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
