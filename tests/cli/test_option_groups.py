"""Options that commands share: each field of a group is an option, in the group's place."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from edgeflare.cli.bench import bench
from edgeflare.cli.option_groups import with_option_groups
from edgeflare.cli.rank import rank
from edgeflare.cli.search import search


@dataclass(frozen=True)
class Size:
    """How large."""

    width: Annotated[int, typer.Option(help="In pixels.")] = 3
    height: Annotated[int, typer.Option()] = 4


@with_option_groups
def area(
    name: Annotated[str, typer.Argument()],
    *,
    before: bool = False,
    size: Size,
    after: bool = False,
) -> int:
    """Print an area."""
    typer.echo(f"{name} {before} {size.width * size.height} {after}")
    return 0


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["wall"], "wall False 12 False"),
        (["wall", "--height", "5", "--after"], "wall False 15 True"),
        (["--width", "2", "--before", "wall"], "wall True 8 False"),
    ],
)
def test_the_fields_of_a_group_are_options(arguments: list[str], printed: str) -> None:
    app = typer.Typer()
    app.command()(area)
    assert CliRunner().invoke(app, arguments).output.strip() == printed


def test_the_options_stand_in_the_place_of_their_group() -> None:
    assert list(inspect.signature(area).parameters) == [
        "name",
        "before",
        "width",
        "height",
        "after",
    ]


@pytest.mark.parametrize("option", ["ties", "max_queries", "time_limit", "max_linf", "max_l2"])
def test_searching_commands_have_the_same_limits_and_bounds(option: str) -> None:
    here, *others = (
        inspect.signature(command).parameters[option] for command in (search, rank, bench)
    )
    for other in others:
        assert (other.default, other.annotation) == (here.default, here.annotation)
