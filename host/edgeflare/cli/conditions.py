"""`edgeflare conditions`: the natural conditions that a survey can be about."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from edgeflare.cli.console import Console, warn
from edgeflare.conditions.condition import Condition
from edgeflare.conditions.condition_registry import all_conditions, condition_complaints
from edgeflare.domains.domain_registry import DOMAINS
from edgeflare.errors import UserError, suggestion
from edgeflare.pages.page import Table
from edgeflare.pages.terminal import print_blocks

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
        described = [
            {
                "name": condition.name,
                "domain": condition.domain,
                "sets": condition.sets,
                "summary": condition.summary,
            }
            for condition in listed
        ]
        typer.echo(json.dumps(described, indent=1))
        return
    rows = [
        (condition.name, condition.domain, ", ".join(condition.sets), condition.summary)
        for condition in listed
    ]
    print_blocks(Console(), Table.of_words(("name", "domain", "sets", "summary"), rows))


def _listed(which: str) -> tuple[Condition, ...]:
    """Return the conditions of a domain, else those of a name, else those of a set."""
    known = all_conditions()
    for found in (
        tuple(condition for condition in known if condition.domain == which),
        tuple(condition for condition in known if condition.name == which),
        tuple(condition for condition in known if which in condition.sets),
    ):
        if found:
            return found
    if which in DOMAINS.names():
        raise UserError(f"there are no conditions of the domain {which}: survey it as it is")
    names = {
        name for condition in known for name in (condition.domain, condition.name, *condition.sets)
    }
    raise UserError(
        f"there is no condition, set or domain {which!r}{suggestion(which, sorted(names))}:"
        " `edgeflare conditions` lists all"
    )
