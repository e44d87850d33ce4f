"""`edgeflare report`: show what a run found."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from edgeflare.campaign.run_directory import RunDirectory
from edgeflare.report.document import load_document
from edgeflare.report.terminal import print_run


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
) -> None:
    """Show what a run found, also one that was cut off before its end."""
    print_run(Console(), load_document(RunDirectory(run)), str(run))
