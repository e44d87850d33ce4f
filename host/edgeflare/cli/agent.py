"""`edgeflare agent`: the part that runs on the device."""

from __future__ import annotations

import os
import sys

import typer

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
    command = [sys.executable, "-m", "edgeflare_agent", *context.args]
    os.execv(sys.executable, command)  # noqa: S606 - the agent takes this process over
