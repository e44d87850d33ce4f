"""`edgeflare agent`: the part that runs on the device."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from edgeflare.cli import run_options
from edgeflare.cli.console import Console
from edgeflare.cli.option_values import complete_device
from edgeflare.devices.bundle.build_bundle import build_bundle
from edgeflare.devices.bundle.bundle_target import TARGETS
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.devices.remote.deployment import install_agent, uninstall_agent
from edgeflare.errors import UserError
from edgeflare.trust import decided_by_user
from edgeflare_agent.runtime.launcher import RUN_MODULE

app = typer.Typer(help="The part that runs on the device.", no_args_is_help=True)


@app.command(
    "serve",
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "help_option_names": [],
    },
    add_help_option=False,
)
def serve(context: typer.Context) -> None:
    """Run an agent here, until Ctrl-C; takes the options of `python -m edgeflare_agent`.

    Reach it from a host with --device grpc://HOST:PORT.
    """
    command = [sys.executable, "-c", RUN_MODULE, "edgeflare_agent", *context.args]
    os.execv(sys.executable, command)  # noqa: S606 - the agent takes this process over


@app.command("bundle")
def bundle(
    target: Annotated[
        str, typer.Option(metavar="TARGET", help=f"What it is for: {', '.join(TARGETS)}.")
    ],
    runtime: Annotated[
        str,
        typer.Option(
            metavar="RUNTIME",
            help="litert or tflite-runtime, perhaps with ==VERSION: the one that your product "
            "ships, since versions differ in their kernels. litert alone is the host's version.",
        ),
    ] = "litert",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Copy it there; by default it stays in the cache."),
    ] = None,
) -> None:
    """Make the agent with a Python and a runtime of its own, in one file for a device.

    Unpacked there, `./agent --help` runs it: without root, from any folder. Needs apt (Debian) and
    pip here, and nothing on the device but its kernel and /bin/sh.
    """
    console = Console(stderr=True)
    with console.status("looking into the cache") as status:
        made = build_bundle(target, runtime, observer=status.update)
        path = _copy(made.path, out) if out is not None else made.path
    size = path.stat().st_size / 1e6
    typer.echo(f"{path}\n{size:.1f} MB, {made.runtime} for {made.target}\nsha256 {made.sha256}")


def _copy(path: Path, out: Path) -> Path:
    target = out / path.name if out.is_dir() else out
    try:
        shutil.copyfile(path, target)
    except OSError as error:
        raise UserError(f"--out {out}: cannot be written: {error.strerror}") from None
    return target


OnDevice = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="NAME",
        help="adb://[SERIAL], ssh://[USER@]HOST[:PORT], or a profile.",
        autocompletion=complete_device,
    ),
]


@app.command("install")
def install(device: OnDevice, trust: run_options.Trust = False) -> None:
    """Put the agent on a device, which every command that uses one does when it is not there."""
    profile = find_profile(device, decided_by_user(trust))
    with Console(stderr=True).status(f"opening {escape(device)}"):
        installed = install_agent(profile)
    sent = installed.sent_bytes
    what = f"{sent / 1e6:.1f} MB sent" if sent else "was there, nothing sent"
    typer.echo(f"{installed.cache}\n{what}\nsha256 {installed.sha256}")


@app.command("uninstall")
def uninstall(device: OnDevice, trust: run_options.Trust = False) -> None:
    """Remove agents and models from a device: the whole cache folder."""
    profile = find_profile(device, decided_by_user(trust))
    with Console(stderr=True).status(f"opening {escape(device)}"):
        folder = uninstall_agent(profile)
    typer.echo(f"removed {folder}" if folder else "nothing was there")
