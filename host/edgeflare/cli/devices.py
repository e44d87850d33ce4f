"""`edgeflare devices`: the devices that there are, and what one of them is."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from edgeflare.devices.device import connect
from edgeflare.devices.profile import find_profile, list_profiles

app = typer.Typer(help="The devices that there are.", no_args_is_help=True)


@app.command("list")
def list_() -> None:
    """List the profiles: shipped ones, ~/.config/edgeflare/devices/, ./device_profiles/."""
    table = Table(box=None, pad_edge=False)
    for column in ("name", "transport", "kernels", "threads", "what it is"):
        table.add_column(column)
    for profile in list_profiles():
        table.add_row(
            profile.name,
            profile.transport,
            profile.kernels,
            str(profile.threads),
            escape(profile.description),
        )
    Console().print(table)


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A profile, or grpc://HOST:PORT.")],
) -> None:
    """Show what a profile says, and what its device says of itself (starts its agent)."""
    profile = find_profile(name)
    said = {field.name: getattr(profile, field.name) for field in fields(profile)}
    with connect(profile) as device:
        told = device.provenance.to_json()
    shown = {
        "profile": {key: value for key, value in said.items() if value is not None},
        "device": {key: value for key, value in told.items() if value is not None},
    }
    typer.echo(json.dumps(shown, indent=2, default=str))
