"""`edgeflare operators`: the mutation operators that a search can draw from."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from edgeflare.cli.console import Console
from edgeflare.search.operator_pool import all_operators
from edgeflare.untrusted_text import printable

AsJson = Annotated[bool, typer.Option("--json", help="Print the list as JSON.")]


def operators(as_json: AsJson = False) -> None:
    """List the mutation operators that are installed, for `--operators`."""
    rows = [(one.name, one.domain, one.package) for one in all_operators()]
    columns = ("name", "domain", "package")
    if as_json:
        typer.echo(json.dumps([dict(zip(columns, row, strict=True)) for row in rows], indent=1))
        return
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(escape(printable(cell)) for cell in row))
    Console().print(table)
