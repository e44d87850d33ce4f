"""Options of commands that run on a fleet, and what of a command its hosts are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from edgeflare.errors import UserError

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
        help="Seeds that a host is given at a time; best 5 to 10 minutes of a device. By default "
        "four times for each device.",
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
        help="With --fleet local and no --fleet-file: how many of the device at once.",
        rich_help_panel=_FLEET,
    ),
]


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """Whether a command runs on many hosts, and on which."""

    fleet: FleetAddress = None
    fleet_file: FleetFile = None
    unit_seeds: UnitSeeds = None
    fleet_devices: LocalDevices = 2

    def require_complete(self) -> None:
        """Refuse options of a fleet without one, and a cluster without its devices.

        Raises:
            UserError: it is so.

        """
        if self.fleet is None and self != FleetOptions():
            raise UserError("--fleet-file, --unit-seeds and --fleet-devices belong to --fleet")
        if self.fleet_file is not None and self.fleet_devices != FleetOptions().fleet_devices:
            raise UserError(
                "--fleet-devices is for --fleet local without --fleet-file: leave it out"
            )
        if self.fleet not in (None, "local") and self.fleet_file is None:
            raise UserError(
                f"--fleet {self.fleet} has to know the devices of its hosts: add --fleet-file FILE"
            )


_WITH_VALUE: Final = frozenset(
    {
        *("--fleet", "--fleet-file", "--unit-seeds", "--fleet-devices"),
        *("--out", "--device", "--seed-ids", "--screening", "--fail-on", "--allow"),
    }
)
_FLAGS: Final = frozenset({"--resume", "--overwrite", "--dry-run", "--screen-only", "--quiet"})


def unit_command(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return what of a command's arguments its units have too: not where it runs, nor its folder.

    Args:
        arguments: of the program, as it was called.

    """
    kept, left = [], list(arguments)
    while left:
        one = left.pop(0)
        name, separator, _ = one.partition("=")
        if name in _WITH_VALUE:
            if not separator:
                del left[:1]
        elif one not in _FLAGS:
            kept.append(one)
    return (*kept[:1], "--fail-on", "none", "--quiet", *kept[1:])
