"""`edgeflare conditions`: the natural conditions that a survey can be about."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from edgeflare.cli.console import Console, warn
from edgeflare.conditions.condition import Condition
from edgeflare.conditions.condition_registry import all_conditions, condition_complaints
from edgeflare.domains.domain_registry import DOMAINS
from edgeflare.errors import UserError
from edgeflare.suggestion import suggestion
from edgeflare.untrusted_text import printable

Which = Annotated[
    str | None,
    typer.Argument(
        metavar="[DOMAIN|SET|NAME]", help="List those of a domain or a set, or one of them."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the list as JSON.")]


def conditions(which: Which = None, as_json: AsJson = False) -> None:
    """List the natural conditions that are installed, for `--conditions`.

    Each has the severities 1 to 5, and may be of sets such as `common`. Those of a package that
    cannot be used are left out, with a warning.
    """
    for complaint in condition_complaints():
        warn(complaint)
    listed = all_conditions() if which is None else _listed(which)
    if as_json:
        rows = [
            {"name": one.name, "domain": one.domain, "sets": one.sets, "summary": one.summary}
            for one in listed
        ]
        typer.echo(json.dumps(rows, indent=1))
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("domain", no_wrap=True)
    table.add_column("sets", overflow="fold")
    table.add_column("summary", overflow="fold")
    for one in listed:
        cells = (one.name, one.domain, ", ".join(one.sets), one.summary)
        table.add_row(*(escape(printable(cell)) for cell in cells))
    Console().print(table)


def _listed(which: str) -> tuple[Condition, ...]:
    """Return the conditions of a domain, else those of a name, else those of a set.

    Raises:
        UserError: there are none.

    """
    known = all_conditions()
    for found in (
        tuple(one for one in known if one.domain == which),
        tuple(one for one in known if one.name == which),
        tuple(one for one in known if which in one.sets),
    ):
        if found:
            return found
    if which in DOMAINS.names():
        raise UserError(f"there are no conditions of the domain {which}: survey it as it is")
    names = {name for one in known for name in (one.domain, one.name, *one.sets)}
    raise UserError(
        f"there is no condition, set or domain {which!r}{suggestion(which, sorted(names))}:"
        " `edgeflare conditions` lists all"
    )
