"""Options that give the new paths of a run's models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Original = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="Where the original model is now, if it was moved; or the Python function that it is, "
        "which is never imported because a run names it.",
    ),
]
Compressed = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Where the compressed model is now, if it was moved."),
]
