"""`edgeflare fleet`: how far the work of a fleet is, and hosts that get no further work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.markup import escape

from edgeflare.cli.console import Console
from edgeflare.cli.option_values import complete_run
from edgeflare.errors import UserError, suggestion
from edgeflare.fleet.record.fleet_folder import FleetFolder
from edgeflare.fleet.record.fleet_state import FleetState
from edgeflare.pages.page import Table
from edgeflare.pages.terminal import print_blocks
from edgeflare.record.folder_lock import is_locked
from edgeflare.record.json_types import plain_json
from edgeflare.untrusted_text import printable

_OF_ADDITIONS: Final = (".explain.fleet", ".inspect.fleet")
"""Ends the folders of commands that go on by themselves."""

app = typer.Typer(
    help="How far the work of a fleet is, and hosts that get no further work.",
    no_args_is_help=True,
)

FleetRun = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        help="The --out of the command that works on the fleet.",
        autocompletion=complete_run,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print what fleet.json holds.")]
HostName = Annotated[str, typer.Argument(metavar="HOST", help="As fleet.toml names it.")]
Undo = Annotated[bool, typer.Option("--undo", help="Give the host work again.")]


@app.command()
def status(run: FleetRun, as_json: AsJson = False) -> None:
    """Say how far the units are, what each device does, and what is quarantined and why.

    It reads RUN.fleet/fleet.json, which the command that works on the fleet writes every few
    seconds. RUN.fleet/fleet.html shows the same in a browser.
    """
    folder = FleetFolder.beside(run)
    state = folder.shown()
    if as_json:
        typer.echo(json.dumps(plain_json(state), indent=1))
        return
    console = Console()
    console.print(f"{state.summary()}{_ending(folder, state)}")
    rows = [
        (
            place.place,
            str(place.units),
            f"{state.busy_share(place):.0%}",
            place.unit,
            state.why_idle(place),
        )
        for place in state.places
    ]
    print_blocks(
        console,
        Table.of_words(("device", "units", "busy", "now", "no further work, because"), rows),
    )


@app.command()
def drain(run: FleetRun, host: HostName, undo: Undo = False) -> None:
    """Give a host no further units, so that it may be looked after; what runs there ends first."""
    folder = FleetFolder.beside(run)
    state = folder.shown()
    known = sorted({place.host for place in state.places})
    if host not in known:
        raise UserError(
            f"no host {host} in {folder.path}{suggestion(host, known)}: it has {', '.join(known)}"
        )
    if undo:
        folder.undrain(host)
    else:
        folder.drain(host)
    later = "" if is_locked(folder.path) else f", once the command goes on{_resumed(folder)}"
    said = f"{host} gets {'work again' if undo else 'no further work'}{later}"
    Console().print(escape(printable(said)))


def _ending(folder: FleetFolder, state: FleetState) -> str:
    """Return whether the command still works, and how to go on with what it has left."""
    goes_on = f": the same one{_resumed(folder)} goes on"
    if state.ended:
        done = all(unit.status == "done" for unit in state.units)
        return "; the command has ended" + ("" if done else goes_on)
    return "" if is_locked(folder.path) else f"; the command is gone{goes_on}"


def _resumed(folder: FleetFolder) -> str:
    """Return what the command that works there is told to go on, in words."""
    return "" if folder.path.name.endswith(_OF_ADDITIONS) else " with --resume"
