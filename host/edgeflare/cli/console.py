"""The terminal, as all commands print to it: no text from outside can command it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from edgeflare.untrusted_text import for_terminal


class Console(RichConsole):
    """A console that replaces control characters in whatever text it is given."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the segments of a renderable; the codes that are rich's own stay."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=for_terminal(segment.text))
