"""`edgeflare devices`: the devices that there are, and what one of them is."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Annotated

import typer
from rich.markup import escape

from edgeflare.cli import run_options
from edgeflare.cli.console import Console
from edgeflare.cli.option_values import complete_device
from edgeflare.devices.device import connect
from edgeflare.devices.device_check import check_device, device_states
from edgeflare.devices.profile_lookup import find_profile, list_profiles
from edgeflare.devices.provenance import features_for_kernels
from edgeflare.pages.facts import details
from edgeflare.pages.page import Facts, Table
from edgeflare.pages.terminal import print_blocks
from edgeflare.trust import decided_by_user

app = typer.Typer(help="The devices that there are, and how they are right now.")


@app.callback(invoke_without_command=True)
def now(context: typer.Context) -> None:
    """Say of each profile, and each attached phone, whether it can be used right now."""
    if context.invoked_subcommand is not None:
        return
    profiles, broken = list_profiles()
    with Console(stderr=True).status("looking around"):
        seen = device_states(profiles)
    rows = [(profile.name, profile.transport, state) for profile, state in seen]
    rows += [(profile.name, "?", profile.complaint) for profile in broken]
    print_blocks(Console(), Table.of_words(("name", "transport", "right now"), rows))


DeviceName = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A profile, adb://[SERIAL], ssh://HOST or grpc://…",
        autocompletion=complete_device,
    ),
]


AsJson = Annotated[bool, typer.Option("--json", help="Print the list as JSON.")]


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the profiles: shipped ones, ~/.config/edgeflare/devices/, ./device_profiles/."""
    profiles, broken = list_profiles()
    if as_json:
        keys = ("name", "transport", "kernels", "threads", "description")
        listed = [{key: getattr(profile, key) for key in keys} for profile in profiles]
        listed += [{"name": one.name, "complaint": one.complaint} for one in broken]
        typer.echo(json.dumps(listed, indent=1))
        return
    rows: list[tuple[str, ...]] = [
        (
            profile.name,
            profile.transport,
            profile.kernels,
            str(profile.threads),
            profile.description,
        )
        for profile in profiles
    ]
    rows += [(profile.name, "?", "?", "?", profile.complaint) for profile in broken]
    header = ("name", "transport", "kernels", "threads", "what it is")
    print_blocks(Console(), Table.of_words(header, rows))


@app.command("show")
def show(
    name: DeviceName,
    trust: run_options.Trust = False,
) -> None:
    """Show what a profile says, and what its device says of itself (starts its agent)."""
    profile = find_profile(name, decided_by_user(trust))
    said = {field.name: getattr(profile, field.name) for field in fields(profile)}
    said |= said.pop("options")
    with connect(profile) as device:
        provenance = device.provenance.to_json()
    shown = {
        "profile": {key: value for key, value in said.items() if value is not None},
        "device": {key: value for key, value in provenance.items() if value is not None},
    }
    typer.echo(json.dumps(shown, indent=2, default=str))


@app.command("check")
def check(
    name: DeviceName,
    trust: run_options.Trust = False,
) -> None:
    """Try a device: put the agent there if needed, start it, run a small model, and stop it.

    Of the CPU's features it names those by which kernels are chosen; `devices show` has all.
    """
    profile = find_profile(name, decided_by_user(trust))
    with Console(stderr=True).status(f"opening {escape(name)}"):
        checked = check_device(profile)
    provenance = checked.provenance.to_json()
    provenance["cpu_features"] = list(features_for_kernels(checked.provenance.cpu_features))
    rows = [
        *details(provenance),
        *(
            (f"temperature, {sensor}", f"{degrees:.1f} °C")
            for sensor, degrees in checked.telemetry.temperatures.items()
        ),
        ("agent ready after", f"{checked.open_seconds:.1f} s"),
        ("model open after", f"{checked.load_seconds:.1f} s more"),
    ]
    print_blocks(Console(), Facts("", rows))
    typer.echo(f"{name} is ready: it ran a model of one layer, and answered right")
