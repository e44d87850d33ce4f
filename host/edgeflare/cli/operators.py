"""`edgeflare operators`: the mutation operators that a search can draw from."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from edgeflare.cli.console import Console
from edgeflare.pages.page import Table
from edgeflare.pages.terminal import print_blocks
from edgeflare.strategies.operator_pool import all_operators

AsJson = Annotated[bool, typer.Option("--json", help="Print the list as JSON.")]


def operators(as_json: AsJson = False) -> None:
    """List the mutation operators that are installed, for `--operators`."""
    rows = [(operator.name, operator.domain, operator.package) for operator in all_operators()]
    columns = ("name", "domain", "package")
    if as_json:
        typer.echo(json.dumps([dict(zip(columns, row, strict=True)) for row in rows], indent=1))
        return
    print_blocks(Console(), Table.of_words(columns, rows))
