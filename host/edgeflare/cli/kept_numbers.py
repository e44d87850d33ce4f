"""Commands whose whole numbers every reader of JSON keeps, since runs are told them in JSON."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand


class KeptNumbers(TyperCommand):
    """A command that refuses a whole number which no run could be read with."""

    def make_context(self, info_name: Any, args: list[str], *more: Any, **extra: Any) -> Any:
        """Return the context of a call; Typer's ranges have a least number alone."""
        from edgeflare.record.json_file import MOST  # noqa: PLC0415 - not for a question about all

        context: Any = super().make_context(info_name, args, *more, **extra)
        params: list[Any] = list(self.params)
        for param in params:
            value = context.params.get(param.name)
            if isinstance(value, int) and abs(value) > MOST:
                raise typer.BadParameter(f"{value} is above {MOST}", context, param)
        return context
