"""The operators that are known, with their types and parameters."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.findings.spoken_settings import fact_names
from edgeflare.conform.operators.known_operators import known_operators


def listed_operators(cells: tuple[Cell, ...]) -> list[dict[str, Any]]:
    """Return operators as plain JSON values: types, and parameters with their buckets.

    Args:
        cells: those to list.

    """
    names = dict.fromkeys(operator for operator, _ in cells)
    return [_listed(name, [type_ for one, type_ in cells if one == name]) for name in names]


def _listed(operator: str, types: list[str]) -> dict[str, Any]:
    parameters: dict[str, dict[str, Any]] = {}
    for type_ in types:
        for one in known_operators()[operator].parameters(type_):
            known = parameters.setdefault(
                one.name, {"name": one.name, "kind": one.kind, "buckets": {}}
            )
            known["buckets"] |= dict.fromkeys(one.buckets)
    for named in parameters.values():
        named["buckets"] = list(named["buckets"])
    return {"operator": operator, "types": types, "parameters": list(parameters.values())}


def print_operators(console: Console, cells: tuple[Cell, ...]) -> None:
    """Print operators; of one alone its parameters too."""
    listed = listed_operators(cells)
    if len(listed) == 1:
        (only,) = listed
        console.print(Text(f"{only['operator']}: {', '.join(only['types'])}", style="bold"))
        table = Table("parameter", "changes", "what coverage tells apart", box=None, pad_edge=False)
        for one in only["parameters"]:
            table.add_row(one["name"], one["kind"], Text(", ".join(one["buckets"])))
        console.print(table)
        facts = dict.fromkeys(name for cell in cells for name in fact_names(cell))
        if facts:
            console.print(Text(f"Conditions speak of these, too: {', '.join(facts)}."))
        return
    table = Table("operator", "types", "parameters", box=None, pad_edge=False)
    for operator in listed:
        names = ", ".join(one["name"] for one in operator["parameters"])
        table.add_row(operator["operator"], ", ".join(operator["types"]), Text(names))
    console.print(table)
    console.print(
        Text(f"{len(listed)} operators, {len(cells)} operators and types", style="dim"),
    )
