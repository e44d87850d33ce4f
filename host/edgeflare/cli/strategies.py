"""`edgeflare strategies`: the search strategies that are installed, and the parameters of one."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from textwrap import fill
from typing import Annotated

import typer
from rich.markup import escape
from rich.padding import Padding

from edgeflare.cli.console import Console
from edgeflare.cli.option_values import complete_strategy
from edgeflare.errors import UserError
from edgeflare.pages.page import Table
from edgeflare.pages.terminal import print_blocks
from edgeflare.strategies.strategy_parameters import Parameter, Value
from edgeflare.strategies.strategy_registry import (
    RegisteredStrategy,
    broken_strategies,
    find_strategy,
)
from edgeflare.strategies.strategy_registry import strategies as installed
from edgeflare.tasks.task_registry import TASKS

AsJson = Annotated[bool, typer.Option("--json", help="Print the list, or the strategy, as JSON.")]

_ITEM = re.compile(r"(?:-|\d+\.) ")
"""What an item of a list begins with."""


def strategies(
    name: Annotated[
        str | None,
        typer.Argument(
            autocompletion=complete_strategy,
            help="Show what this strategy does, and its parameters.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the search strategies that are installed, or show one of them with its parameters.

    Parameters are set with `--set NAME=VALUE` of `search` and `rank`, and with
    `--set STRATEGY.NAME=VALUE` of `bench`.
    """
    if as_json:
        typer.echo(json.dumps(_listed() if name is None else _shown(name), indent=1))
    elif name is None:
        rows = [(strategy.name, strategy.summary) for strategy in installed().values()]
        rows += [
            (broken_strategy.name, broken_strategy.complaint)
            for broken_strategy in broken_strategies()
        ]
        print_blocks(Console(), Table.of_words(("name", "summary"), rows))
    else:
        _print_one(find_strategy(name))


def _listed() -> list[dict[str, str]]:
    """Return the strategies as plain values; one that cannot be used has a complaint."""
    return [
        *({"name": one.name, "summary": one.summary} for one in installed().values()),
        *({"name": one.name, "complaint": one.complaint} for one in broken_strategies()),
    ]


def _shown(name: str) -> dict[str, object]:
    """Return a strategy with its parameters as plain values."""
    entry = find_strategy(name)
    return {
        "name": entry.name,
        "summary": entry.summary,
        "parameters": [
            {
                "name": parameter.name,
                "default": parameter.default,
                "by_task": dict(_by_task(entry, parameter)),
                "expected": parameter.expected,
                "description": parameter.description,
            }
            for parameter in entry.parameters
        ],
    }


def _print_one(entry: RegisteredStrategy) -> None:
    console = Console()
    console.print(f"{escape(entry.name)}: {escape(entry.summary)}", highlight=False)
    for text in (inspect.getdoc(entry.strategy), sys.modules[entry.strategy.__module__].__doc__):
        if text:
            said = rewrapped(inspect.cleandoc(text), console.width)
            console.print("", escape(said), sep="\n", highlight=False)
    console.print("", "Parameters:" if entry.parameters else "It has no parameters.", sep="\n")
    for parameter in entry.parameters:
        default = (
            f"{parameter.default:g}"
            if isinstance(parameter.default, float)
            else str(parameter.default)
        )
        said = "".join(
            f"; {value} with the task {task}" for task, value in _by_task(entry, parameter)
        )
        line = f"  {parameter.name} = {default}  ({parameter.expected}{said})"
        console.print(escape(line), highlight=False)
        console.print(Padding(escape(parameter.description), (0, 0, 0, 6)), highlight=False)


def _by_task(entry: RegisteredStrategy, parameter: Parameter) -> Iterator[tuple[str, Value]]:
    """Yield the tasks with which a parameter has another default, and that default."""
    for task in TASKS.names():
        with suppress(UserError):  # of another package, and broken: told where it is asked for
            values = TASKS.find(task).search_parameters.get(entry.name, {})
            if parameter.name in values:
                yield task, values[parameter.name]


def rewrapped(text: str, width: int) -> str:
    """Return a text with its paragraphs and items of lists wrapped to a width.

    Args:
        text: lines of plain text, such as a docstring that `inspect.cleandoc` has read.
        width: columns.

    """
    found: list[tuple[str, str, str]] = []  # indentation, that of the lines that follow, words
    continued = ""
    for line in text.splitlines():
        words = line.strip()
        indent = line[: len(line) - len(line.lstrip())]
        item = _ITEM.match(words)
        if words and not item and found and indent == continued and found[-1][2]:
            found[-1] = (*found[-1][:2], f"{found[-1][2]} {words}")
            continue
        continued = indent + " " * (item.end() if item else 0)
        found.append((indent, continued, words))
    return "\n".join(
        fill(words, width, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)
        for first, others, words in found
    )
