"""The help of each command: two screens, and one word for one thing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from called_commands import call_here
from edgeflare.cli.app import LazyCommand, app
from edgeflare.cli.option_values import read_time

TWO_SCREENS = 100


def commands(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    command = command.load() if isinstance(command, LazyCommand) else command
    yield path, command
    for name, one in getattr(command, "commands", {}).items():
        yield from commands(one, *path, name)


COMMANDS = dict(commands(get_command(app)))
del COMMANDS["agent", "serve"]  # its process becomes the agent, whose help this is


@pytest.fixture(autouse=True)
def _on_a_terminal_of_100_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_the_help_fits_two_screens(path: tuple[str, ...]) -> None:
    assert len(call_here(*path, "--help").out.splitlines()) <= TWO_SCREENS


def test_the_help_shows_a_time_as_it_is_typed() -> None:
    options = [one for command in COMMANDS.values() for one in command.params]
    for one in options:
        if one.metavar == "TIME" and one.default is not None:
            shown = one.show_default if isinstance(one.show_default, str) else one.default
            assert isinstance(shown, str)
            assert read_time(one.opts[0], shown) == read_time(one.opts[0], str(one.default))


@pytest.mark.parametrize("name", ["search", "survey", "repair", "check", "rank"])
def test_what_the_help_leaves_out_is_named_by_panel_and_shown_by_another_option(name: str) -> None:
    brief, whole = (call_here(name, option).out for option in ("--help", "--help-all"))
    shown = {
        one.opts[0]: (one.opts[0] in brief, f"{','.join(one.opts)} " in whole)
        for one in COMMANDS[(name,)].params
        if one.opts[0].startswith("--") and not one.hidden
    }
    assert all(of_whole for _, of_whole in shown.values())
    assert not all(of_brief for of_brief, _ in shown.values())
    assert "--help-all" in brief
    assert call_here(name, "--help").out == brief


def test_what_lists_something_prints_it_as_json_too() -> None:
    lists = {
        " ".join(path): {option for one in command.params for option in one.opts}
        for path, command in COMMANDS.items()
        if (command.help or "").startswith("List ")
    }
    assert set(lists) >= {"conditions", "devices list", "operators", "strategies"}
    assert all("--json" in options for options in lists.values())


def test_an_option_that_takes_a_folder_a_time_or_a_model_has_one_word_for_it() -> None:
    words = defaultdict(set)
    for command in COMMANDS.values():
        for one in command.params:
            words[one.opts[0]].add(one.metavar)
    assert words["--time-limit"] | words["--max-time"] == {"TIME"}
    assert words["--original"] | words["--compressed"] == {"MODEL"}
    assert words["--out"] == {"DIR", "FILE"}  # what makes one file, and what makes a folder
    assert words["--inputs"] == {"PATH"}
    assert words["--rng-seed"] == {"N"}
