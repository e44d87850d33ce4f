"""Arguments of calls from Python: named as the options, also in messages."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

import pytest
from typer.main import get_command

import edgeflare
from edgeflare.api.call_arguments import naming_arguments
from edgeflare.cli.app import LazyCommand, app
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.pytest_plugin import EdgeFlare

OF_PYTHON = {"self", "progress", "trust_profiles", "models", "pair"}
"""Arguments of a call alone: a command is quiet, trusts by one option, and has models in places."""

CALLS = [
    *((name, getattr(edgeflare, name)) for name in ("check", "layers", "search")),
    *((name, getattr(EdgeFlare, name)) for name in ("check", "search", "survey")),
]


def options_of(command: str) -> dict[str, Any]:
    """The options and arguments of a command, by the names that an argument of a call has."""
    commands: Any = get_command(app)
    found = commands.commands[command]
    found = found.load() if isinstance(found, LazyCommand) else found
    return {
        (one.opts[0].removeprefix("--").removeprefix("no-").replace("-", "_") + "s" * one.multiple)
        if one.param_type_name == "option"
        else one.name: one
        for one in found.params
    }


@pytest.mark.parametrize(("command", "call"), CALLS, ids=[call.__qualname__ for _, call in CALLS])
def test_an_argument_is_named_as_the_option_that_says_the_same(
    command: str, call: Callable[..., object]
) -> None:
    options = options_of(command)
    names = {*options, *(name.removesuffix("s") for name in options)}
    assert set(signature(call).parameters) - OF_PYTHON <= names


@naming_arguments
def refuse(
    said: type[Exception], *, time_limit: float = 1.0, near: bool = True, gates: str = ""
) -> None:
    """Raise what a room below says."""
    assert (time_limit, near, gates) == (1.0, True, "")
    raise said(
        "give a longer --time-limit, or --no-near; --near, --gate 'x', --time-limits and --trust"
        " stay-at--near; --no-gates"
    )


@pytest.mark.parametrize("kind", [UserError, InfrastructureError])
def test_a_message_names_arguments_where_it_names_their_options(kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        refuse(kind)
    assert str(caught.value) == (
        "give a longer time_limit, or near=False; near=True, gates 'x', --time-limits and --trust"
        " stay-at--near; --no-gates"
    )


def test_a_call_keeps_its_signature() -> None:
    assert signature(refuse).parameters["near"].kind is Parameter.KEYWORD_ONLY
