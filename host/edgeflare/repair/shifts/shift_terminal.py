"""A repair by shifts on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

REPAIRERS = {
    "perceptron": "the paper's perceptron",
    "perceptron-abstaining": "perceptron, abstaining",
    "second-class": "second class, always",
    "shifts-mixture-only": "shifts, mixture only",
    "shifts": "shifts (the default)",
}
"""The repairers by their key in `repair.json`, in words."""


def print_shifts(console: Console, shifts: Mapping[str, Any]) -> None:
    """Print the effect of each repairer on held-out folds.

    Args:
        console: where to.
        shifts: the section `shifts` of a candidate's details.

    """
    inputs, queries = shifts["inputs"], shifts["queries"]
    console.print(
        f"{inputs['triggers']} triggers and their seeds, {inputs['near_boundary_agreeing']:,}"
        f" near-boundary inputs that agree, {inputs['near_boundary_deviating']:,} that do not"
        f" ({sum(queries.values()):,} queries)",
        highlight=False,
    )
    if inputs["not_reproduced"]:
        console.print(
            f"{inputs['not_reproduced']} triggers are left out: they do not deviate here and now",
            highlight=False,
        )
    console.print(_table(shifts))


def _table(shifts: Mapping[str, Any]) -> Table:
    table = Table(
        "on held-out folds",
        "repaired",
        "induced on seeds",
        "induced on agreeing",
        "net (95 % interval)",
        "as they come",
    )
    for name, row in shifts["repairers"].items():
        net = row["net"]
        table.add_row(
            REPAIRERS[name],
            f"{row['repair_ratio']:.1%}",
            f"{row['inducing_ratio']:.1%}",
            f"{row['induced_agreeing']:.1%}",
            f"{100 * net['value']:+.1f} ({100 * net['low']:+.1f} … {100 * net['high']:+.1f})",
            "–" if row["unled_ratio"] is None else f"× {row['unled_ratio']:.2f}",
        )
    return table
