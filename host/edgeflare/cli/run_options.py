"""Command-line options about the run directory, the exit code, and what the user trusts."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli.option_values import require_finite

_RUN = "The run"


class FailOn(str, Enum):
    """Which deviations make the exit code 1."""

    ANY = "any"
    HARMFUL = "harmful"
    KERNEL = "kernel"
    NONE = "none"


Out = Annotated[
    Path | None,
    typer.Option(
        metavar="RUN",
        help="The run directory, absent or empty. By default a new folder in runs/.",
        rich_help_panel=_RUN,
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace the run in --out.", rich_help_panel=_RUN)
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the run in --out.", rich_help_panel=_RUN)
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Open the models and the device, say what would be done, write nothing.",
        rich_help_panel=_RUN,
    ),
]
FailOnWhat = Annotated[
    FailOn,
    typer.Option(
        "--fail-on",
        help="Which deviations make the exit code 1. harmful: those on which the original (with "
        "--find kernel, the twin) is right by the seed's label, those without a label, and "
        "failures of the device.",
        rich_help_panel=_RUN,
    ),
]
Allow = Annotated[
    float,
    typer.Option(
        callback=require_finite,
        min=0.0,
        max=1.0,
        metavar="RATE",
        help="Share of the seeds that may have a deviation before the exit code is 1.",
        rich_help_panel=_RUN,
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Trust what needs it: a Python function that a pair.toml names, a profile in "
        "./device_profiles that starts a program or names an address. Kept until the files change.",
        rich_help_panel=_RUN,
    ),
]
