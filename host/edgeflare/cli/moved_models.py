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
        "which is not imported because a run names it, but where you agreed to its code before.",
    ),
]
Compressed = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Where the compressed model is now, if it was moved."),
]
Functions = Annotated[
    list[str] | None,
    typer.Option(
        "--function",
        metavar="MODULE:FUNCTION",
        help="A Python function that RUN's pair has for features or post-processing. It is not"
        " imported because a run names it, but where you agreed to its code before; again for each"
        " further one.",
    ),
]
