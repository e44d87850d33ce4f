"""`edgeflare doctor`: what is missing, and how to install it."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from edgeflare import __version__
from edgeflare.cli.console import Console
from edgeflare.devices.installation_check import check_installation
from edgeflare.devices.transports.transport_plugin import Check
from edgeflare.pages.page import Table
from edgeflare.pages.terminal import print_blocks

AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print everything as JSON, for a report of a bug."),
]


def doctor(as_json: AsJson = False) -> None:
    """Say what this machine has, what it lacks, and the command that installs it."""
    checks = check_installation()
    if as_json:
        typer.echo(json.dumps(_described(checks), indent=1))
        return
    rows = [
        (
            "ok" if check.found else "MISSING" if check.needed else "-",
            check.name,
            check.found or check.mend,
        )
        for check in checks
    ]
    print_blocks(Console(), Table.of_words(("", "what", "found, or to get it"), rows))


def _described(checks: Sequence[Check]) -> dict[str, object]:
    """Return what a report of a bug needs; no name of the machine or its user."""
    return {
        "edgeflare": __version__,
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "checks": [asdict(one) for one in checks],
    }
