"""A repair on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table


def print_repair(console: Console, document: Mapping[str, Any], out: str) -> None:
    """Print the candidates, the judgement of the chosen one, and what was written."""
    seeds = document["seeds"]
    console.print(
        f"{seeds['fit']} seeds to fit with, {seeds['choose']} to choose by, {seeds['judge']} to"
        " judge",
        highlight=False,
    )
    console.print(_candidates(document))
    for one in document["candidates"]:
        if one["set_aside"] is not None:
            console.print(
                f"{one['name']} is set aside: {escape(one['set_aside'])}", highlight=False
            )
    if document["judged"] is not None:
        console.print(_judged(document))
    _print_end(console, document, out)


def _candidates(document: Mapping[str, Any]) -> Table:
    """Return a table of what the candidates do to the inputs that choose."""
    sets = ("tight", "wide", "sampled")
    table = Table("candidate", "score", *sets, "s", title="Deviations on the inputs to choose by")
    for one in document["candidates"]:
        table.add_row(
            one["name"],
            "–" if one["score"] is None else f"{one['score']:.2f}",
            *(_deviating(one["sets"], name) for name in sets),
            f"{one['seconds']:.1f}",
        )
    return table


def _deviating(sets: Mapping[str, Any] | None, name: str) -> str:
    if sets is None:
        return "–"
    return f"{sets[name]['before']['deviating']} → {sets[name]['after']['deviating']}"


def _judged(document: Mapping[str, Any]) -> Table:
    """Return a table of the chosen candidate on the inputs that judge."""
    counted = ("asked", "deviate", "big", "strict", "mended, broken", "p")
    title = f"{document['chosen']} on the inputs that judge"
    table = Table("set", *counted, title=title)
    for name, one in document["judged"].items():
        figures = [(one["before"][key], one["after"][key]) for key in _FIGURES]
        table.add_row(
            name,
            f"{one['after']['asked']:,}",
            *(f"{before} → {after}" for before, after in figures),
            f"{one['mended']}, {one['broken']}",
            f"{one['p']:.1g}",
        )
    return table


_FIGURES = ("deviating", "big", "strict")


def _print_end(console: Console, document: Mapping[str, Any], out: str) -> None:
    for one in document["on_devices"]:
        console.print(
            f"{escape(one['device'])}: {_sum(one, 'before'):,} of these inputs deviate before,"
            f" {_sum(one, 'after'):,} after; the label that the host foretold on"
            f" {one['same_labels']:,} of {one['asked']:,}",
            highlight=False,
        )
    repaired = document["repaired"]
    if repaired is None:
        console.print(f"No model is written: {escape(document['why'])}.", highlight=False)
        console.print(f"The figures are in {escape(out)}/repair.json.", highlight=False)
        return
    micro = 1e6 * (repaired["seconds_after"] - repaired["seconds_before"])
    console.print(
        f"{escape(out)}/{repaired['file']} is written, by {document['chosen']}:"
        f" {escape(document['why'])}. It has"
        f" {repaired['bytes_after'] - repaired['bytes_before']:+,} bytes, and takes"
        f" {micro:+.1f} µs ({repaired['ratio'] - 1.0:+.1%}) on {escape(repaired['device'])}.",
        highlight=False,
    )
    console.print(f"Search it: edgeflare search {escape(out)}", highlight=False)


def _sum(one: Mapping[str, Any], when: str) -> int:
    return sum(figures[when]["deviating"] for figures in one["sets"].values())
