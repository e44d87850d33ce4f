"""Options that most calls do without: `--help` names their panels, `--help-all` shows them."""

from __future__ import annotations

from copy import copy
from typing import Any, Final

import typer
from typer.core import TyperCommand

PREPARATION: Final = "How inputs are prepared (these override pair.toml)"
SEARCH_DETAIL: Final = "A search in detail"
PARTS: Final = "A run in parts"
SURVEY_DETAIL: Final = "A survey in detail"
METHODS: Final = "Single methods of repair"
FLEET: Final = "On many hosts"

_PANELS: Final = (PREPARATION, SEARCH_DETAIL, PARTS, SURVEY_DETAIL, METHODS, FLEET)
_ALL: Final = "edgeflare.help-all"


class BriefHelp(TyperCommand):
    """A command whose `--help` leaves out the panels above, so that it fits two screens."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options and arguments, with `--help-all` where something is left out."""
        params: list[Any] = list(super().get_params(ctx))
        named = {getattr(param, "rich_help_panel", None) for param in params}
        if panels := [panel for panel in _PANELS if panel in named]:
            params.append(_help_all(self.get_help_option(ctx), panels))
        return params

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, without the further options unless `--help-all` asks for them."""
        params: list[Any] = list(self.params)
        further = [
            param
            for param in params
            if getattr(param, "rich_help_panel", None) in _PANELS and not param.hidden
        ]
        shown = bool(ctx.meta.get(_ALL))
        for param in further:
            param.hidden = not shown
        try:
            super().format_help(ctx, formatter)
        finally:
            for param in further:
                param.hidden = False


def _help_all(of_help: Any, panels: list[str]) -> Any:
    """Return the option that shows these panels too: as `--help` is, of whichever Click."""
    names = [panel.partition(" (")[0] for panel in panels]
    option = copy(of_help)
    option.name, option.opts, option.callback = "help_all", ["--help-all"], _show_all
    words = "; ".join(name[0].lower() + name[1:] for name in names)
    option.help = f"Show the further options too: {words}."
    return option


def _show_all(ctx: Any, _option: Any, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        typer.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()
