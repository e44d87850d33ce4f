"""A repair by shifts on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from edgeflare.repair.repair_cost import latency_change

REPAIRERS = {
    "perceptron": "the paper's perceptron",
    "perceptron-abstaining": "perceptron, abstaining",
    "second-class": "second class, always",
    "shifts-mixture-only": "shifts, mixture only",
    "shifts": "shifts (the default)",
}
"""The repairers by their key in `repair.json`, in words."""


def print_repair_by_shifts(console: Console, document: Mapping[str, Any], out: str) -> None:
    """Print a document of schema `edgeflare.repair/v1`: its repairers, and what was written."""
    print_shifts(console, document)
    _print_test(console, document)
    _print_end(console, document, out)
    console.print(f"See it: edgeflare report {escape(out)} --html", highlight=False, soft_wrap=True)


def print_shifts(console: Console, shifts: Mapping[str, Any]) -> None:
    """Print the effect of each repairer on held-out folds.

    Args:
        console: where to.
        shifts: the section `shifts` of a candidate's details, or a document of schema
            `edgeflare.repair/v1`, which has the same keys.

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


def _print_test(console: Console, document: Mapping[str, Any]) -> None:
    test = document["test"]
    if test is None:
        return
    before, after = test["before"], test["shifts"]
    line = (
        f"fresh data: {before['deviations']} of {test['inputs']:,} inputs deviate"
        f" ({before['strict']} without a tie), with shifts {after['deviations']}"
        f" ({after['strict']})"
    )
    if before["accuracy"] is not None and after["accuracy"] is not None:
        line += f"; accuracy {before['accuracy']:.2%}, with shifts {after['accuracy']:.2%}"
    console.print(line, highlight=False, soft_wrap=True)


def _print_end(console: Console, document: Mapping[str, Any], out: str) -> None:
    repaired = document["repaired"]
    if repaired is None:
        console.print(f"No repairer is written: {escape(document['why'])}.", highlight=False)
        console.print(f"The figures are in {escape(out)}/repair.json.", highlight=False)
        return
    console.print(
        f"{escape(out)}/{escape(repaired['file'])} is written: {escape(document['why'])}. It has"
        f" {repaired['bytes_after'] - repaired['bytes_before']:,} bytes more, and takes"
        f" {escape(latency_change(repaired))}.",
        highlight=False,
    )
    console.print(
        f"The same labels on the device: {repaired['same_labels']:,} of {repaired['asked']:,}.",
        highlight=False,
    )
    console.print(
        f"For a model that cannot be edited, {escape(out)}/{escape(repaired['alone']['file'])}"
        " takes its raw output vector and gives the repaired one.",
        highlight=False,
    )
    console.print(f"Search it: edgeflare search {escape(out)}", highlight=False)
