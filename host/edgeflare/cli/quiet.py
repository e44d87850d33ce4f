"""The option `--quiet`: a command prints nothing but errors, and the path of what it made."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Annotated, Any, Final, TextIO

import typer

from edgeflare.cli.further_options import BriefHelp
from edgeflare.cli.kept_numbers import KeptNumbers

Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        help="Print nothing but errors, and the path of what was made; the exit code says the"
        " rest.",
    ),
]
"""The option, of commands that can be silenced."""


class Quietable(KeptNumbers, BriefHelp):
    """A command that prints nothing while it runs where `--quiet` is given.

    Errors are raised out of it, and printed by whoever called it.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with ExitStack() as stack:
            if ctx.params.get("_quiet"):
                stack.enter_context(_silence())
            return super().invoke(ctx)


_results: Final[list[TextIO]] = []
"""Where results go while everything else is silenced: standard output, or empty."""


def result(path: Path) -> None:
    """Print the path of what a command has made, where it prints nothing else."""
    for stream in _results:
        stream.write(f"{path}\n")


@contextmanager
def _silence() -> Iterator[None]:
    _results.append(sys.stdout)
    try:
        with (
            open(os.devnull, "w", encoding="utf-8") as null,
            redirect_stdout(null),
            redirect_stderr(null),
        ):
            yield
    finally:
        _results.pop()
