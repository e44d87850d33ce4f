"""Options that give the new paths of a run's models, and name its code again."""

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
FrontEnd = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:FUNCTION",
        help="The Python function that makes the features of RUN's sounds, if its pair has one, "
        "which is never imported because a run names it.",
    ),
]
