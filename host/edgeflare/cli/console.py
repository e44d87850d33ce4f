"""The terminal, as all commands print to it: no text from outside can command it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TypeVar

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

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
