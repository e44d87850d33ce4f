"""The commands, gathered."""

from __future__ import annotations

from typing import Annotated

import typer

from edgeflare import __version__
from edgeflare.cli import (
    agent,
    bench,
    compare,
    devices,
    doctor,
    explain,
    export,
    rank,
    repair,
    replay,
    report,
    search,
)
from edgeflare.cli.quiet import Quietable

app = typer.Typer(
    name="edgeflare",
    help=(
        "Find the inputs on which a compressed neural network, on the device that it was "
        "compressed for, decides differently from its original.\n\n"
        "Exit codes of all commands: 0 done, and nothing deviates beyond what is allowed; "
        "1 something does (`search` and `replay` only); 2 the command has to be mended, and one "
        "line says how; 3 a device, a process or a disk failed; 130 Ctrl-C. What is complete "
        "stays after 3 and 130, and the last line says how to go on."
    ),
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.command("search", cls=Quietable)(search.search)
app.command("explain", cls=Quietable)(explain.explain)
app.command("replay", cls=Quietable)(replay.replay)
app.command("compare")(compare.compare)
app.command("export", cls=Quietable)(export.export)
app.command("rank", cls=Quietable)(rank.rank)
app.command("repair", cls=Quietable)(repair.repair)
app.command("bench", cls=Quietable)(bench.bench)
app.command("report", cls=Quietable)(report.report)
app.command("doctor")(doctor.doctor)
app.add_typer(devices.app, name="devices")
app.add_typer(agent.app, name="agent")


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"edgeflare {__version__}")
        raise typer.Exit


@app.callback()
def _edgeflare(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say the version."),
    ] = False,
) -> None:
    pass
