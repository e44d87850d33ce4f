"""The commands, gathered; the module of each is imported when it is called."""

from __future__ import annotations

import functools
import gc
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from edgeflare.cli.address_space import require_address_space
from edgeflare.cli.quiet import Quietable
from edgeflare_protos import __version__

_RICH_MARKUP: Final = "markdown"

_COMMANDS: Final[Mapping[str, Mapping[str, str]]] = {
    "Decide whether a model may ship": {
        "check": "Say whether a compressed model may ship: ship, do not ship or undecided, and"
        " why.",
        "survey": "Estimate how often a compressed model on its device decides differently in "
        "the field.",
        "replay": "Try what a run found again: on another device or firmware, or with a new "
        "compressed model.",
    },
    "Find what is decided differently": {
        "search": "Find the inputs on which a compressed model on its device decides differently.",
        "conform": "Say whether the operators that models need are right on a device.",
        "merge": "Make one run of several that searched parts of the same seeds.",
    },
    "Explain what was found": {
        "explain": "Say why findings deviate, and where in the network it begins.",
        "layers": "Say how far each layer of a compressed model is off, and which of them matter.",
        "inspect": "Say which hidden units have to do with deviations, over many inputs near the"
        " boundary.",
        "report": "Show what a check or a run came to, also one that was cut off, and write it for "
        "others.",
        "export": "Write a finding as a zip that shows the deviation with nothing but numpy and "
        "a runtime.",
    },
    "Mend a model": {
        "repair": "Make a compressed model decide as its original does, as far as that can be "
        "done.",
    },
    "Compare models, runs and strategies": {
        "rank": "Rank compressed models of one original: the more queries a deviation takes, the"
        " better.",
        "compare": "Set runs side by side: devices, quantizations, runtimes, strategies; "
        "searches or replays.",
        "bench": "Run strategies on pairs with several run seeds, and print them side by side.",
    },
    "Look after the lab": {
        "devices": "The devices that there are, and how they are right now.",
        "doctor": "Say what this machine has, what it lacks, and the command that installs it.",
        "fleet": "How far the work of a fleet is, and hosts that get no further work.",
        "agent": "The part that runs on the device.",
        "strategies": "List the search strategies that are installed, or show one of them with "
        "its parameters.",
        "operators": "List the mutation operators that are installed, for `--operators`.",
        "conditions": "List the natural conditions that are installed, for `--conditions`.",
    },
}
"""The commands by group, in the order of `--help`, each with the first sentence of its own help."""


class LazyCommand(TyperCommand):
    """A placeholder that imports its command when that is called, completed or asked for help.

    The module of the command has its name, and holds a function of that name, or a group as `app`.
    """

    def load(self) -> Any:
        """Import and return the command; its class is of Typer's own Click, or of the package."""
        name = str(self.name)
        module = import_module(f"edgeflare.cli.{name}")
        command = _command(name, getattr(module, "app", None) or getattr(module, name))
        if not gc.isenabled():
            gc.freeze()
            gc.enable()
        return command

    def make_context(self, info_name: Any, args: list[str], *more: Any, **extra: Any) -> Any:
        """Return the context of the command itself, so that it is what parses, helps and runs."""
        require_address_space("help" if "--help" in args else str(self.name))
        return self.load().make_context(info_name, args, *more, **extra)


@functools.cache
def _command(name: str, called: Any) -> Any:
    """Return the command of a function or of a group, with its options."""
    alone = typer.Typer(rich_markup_mode=_RICH_MARKUP)
    if isinstance(called, typer.Typer):
        alone.add_typer(called, name=name)
    else:
        alone.command(name, cls=Quietable)(called)
    return get_group(alone).commands[name]


class StoppableGroup(TyperGroup):
    """The group of all commands, which says so when Ctrl-C ends one that does not heed it."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; Typer would make an exit code of Ctrl-C, without a word."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise typer.Abort(*stop.args) from None


app = typer.Typer(
    name="edgeflare",
    cls=StoppableGroup,
    help=(
        "Find the inputs on which a compressed neural network, on the device that it was "
        "compressed for, decides differently from its original.\n\n"
        "Exit codes of all commands: 0 done, and nothing deviates beyond what is allowed; "
        "1 something does (`search` and `replay`), a model may not ship (`check`), a gate is not "
        "held (`survey`), or an operator is wrong (`conform`); 2 the command has to be corrected, "
        "and one line says how; 3 a device, a process or a disk failed; 130 Ctrl-C. "
        "What is complete stays after 3 and 130, and the "
        "last line says how to go on."
    ),
    no_args_is_help=True,
    rich_markup_mode=_RICH_MARKUP,
    pretty_exceptions_enable=False,
)
for _group, _commands in _COMMANDS.items():
    for _name, _sentence in _commands.items():
        app.command(_name, cls=LazyCommand, help=_sentence, rich_help_panel=_group)(lambda: None)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"edgeflare {__version__}")
        raise typer.Exit


@app.callback()
def _edgeflare(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say the version."),
    ] = False,
) -> None:
    pass
