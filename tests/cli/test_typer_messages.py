"""What Typer says of options, whichever of its versions it is, in plain words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from edgeflare.cli.typer_messages import reworded


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("Input should be greater than or equal to 1", "expected 1 or more"),
        ("Input should be less than or equal to 1", "expected 1 or less"),
        (
            "Input should be a valid integer, unable to parse string as an integer",
            "expected a whole number",
        ),
        ("Input should be a valid number, unable to parse", "expected a number"),
        ("Value error, nan is not a finite number", "nan is not a finite number"),
        ("0 is not in the range x>=1.", "0 is not in the range x>=1."),
        ("No such option: --jsonl", "No such option: --jsonl"),
    ],
)
def test_the_words_are_ours(theirs: str, ours: str) -> None:
    assert reworded(f"Invalid value for '--limit': {theirs}") == (
        f"Invalid value for '--limit': {ours}"
    )


@pytest.mark.parametrize("option", ["--limit=0", "--limit=x", "--allow=2", "--time-limit=x"])
def test_no_option_speaks_of_an_input(option: str, call: Callable[..., Any]) -> None:
    said = call("search", "nowhere", option)
    assert said.code == 2
    assert "Input should" not in said.complaint()
    assert option.partition("=")[0] in said.complaint()


@pytest.mark.parametrize("command", ["search", "survey"])
def test_who_asks_for_json_is_told_who_prints_it(command: str, call: Callable[..., Any]) -> None:
    said = call(command, "nowhere", "--json")
    assert said.code == 2
    assert "--json: `edgeflare report RUN --json` prints what" in said.complaint()
