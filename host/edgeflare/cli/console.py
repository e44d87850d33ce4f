"""The terminal of all commands, which `--quiet` silences: no text from outside can command it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Annotated, Any, Final, TextIO, TypeVar

import typer
from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from typer.core import TyperCommand

from edgeflare.errors import UserError
from edgeflare.untrusted_text import for_terminal

_T = TypeVar("_T")


class Console(RichConsole):
    """A console that replaces control characters in whatever text it is given."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the segments of a renderable; the codes that are rich's own stay."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=for_terminal(segment.text))


def unless_damaged(load: Callable[[], _T]) -> _T | None:
    """Return what is loaded; where it is damaged, say so, and return None."""
    try:
        return load()
    except UserError as error:
        warn(str(error))
        return None


def warn(line: str) -> None:
    """Print a warning."""
    sys.stderr.write(f"warning: {for_terminal(' '.join(line.split()))}\n")


Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        help="Print nothing but errors, and the path of what was made; the exit code says the"
        " rest.",
    ),
]
"""The option, of commands that can be silenced."""


class Quietable(TyperCommand):
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
