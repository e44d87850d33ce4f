"""A repair on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from edgeflare.repair.judging.judged_inputs import COUNT
from edgeflare.repair.judging.judgement import SCORED
from edgeflare.repair.planned_repair import PlannedRepair
from edgeflare.repair.repair_cost import latency_change
from edgeflare.repair.shifts.shift_terminal import print_shifts

_FIGURES = ("deviating", "big", "strict")
"""Keys of the figures that the table of the judged inputs shows, before and after."""


def print_repair(console: Console, document: Mapping[str, Any], out: str) -> None:
    """Print the candidates, the judgement of the chosen one, and what was written."""
    for one in document["candidates"]:
        if "shifts" in one["details"]:
            print_shifts(console, one["details"]["shifts"])
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
                f"{escape(one['name'])} is set aside: {escape(one['set_aside'])}", highlight=False
            )
    _print_front(console, document)
    _print_blamed(console, document)
    if document["judged"] is not None:
        console.print(_judged(document))
    _print_end(console, document, out)
    console.print(f"See it: edgeflare report {escape(out)} --html", highlight=False, soft_wrap=True)


def print_planned_repair(console: Console, planned: PlannedRepair, out: str) -> None:
    """Print what a repair would do."""
    seeds = planned.seeds
    console.print(
        f"{seeds['fit']} seeds to fit with, {seeds['choose']} to choose by, {seeds['judge']} to"
        f" judge. Candidates: {', '.join(planned.candidates)}; on"
        f" {escape(', '.join(planned.devices))}. Each is judged on up to {COUNT:,} inputs a set,"
        f" and chosen within --max-size {escape(planned.max_size)} and --max-latency"
        f" {escape(planned.max_latency)}. "
        f"Nothing is done, and nothing written to {escape(out)}.",
        highlight=False,
    )


def print_repaired_search(console: Console, document: Mapping[str, Any]) -> None:
    """Print the run and the search of the repaired model side by side."""
    again = document["again"]
    table = Table("searched again", "deviating seeds", "findings", "success", "mean queries")
    for name in ("before", "after"):
        row = again[name]
        mean, rate = row["mean_queries"], row["success_rate"]
        table.add_row(
            name,
            str(row["deviating_seeds"]),
            str(row["findings"]),
            "–" if rate is None else f"{rate:.1%}",
            "–" if mean is None else f"{mean:.1f}",
        )
    console.print(table)


def deviating_on(one: Mapping[str, Any], when: str) -> int:
    """Return how many inputs deviate on a device, `before` or `after`, by its entry."""
    return sum(figures[when]["deviating"] for figures in one["sets"].values())


def offer_line(document: Mapping[str, Any]) -> str | None:
    """Return what more cost than the limits allow would give; None where that is nothing.

    The counts are those of the inputs that judge, and of the written model or the one before.
    """
    offered = document["offered"]
    if offered is None:
        return None
    (tried,) = (one for one in document["candidates"] if one["name"] == offered["candidate"])
    now = (document["judged"], "after") if document["written"] else (offered["judged"], "before")
    after, instead = (
        sum(sets[name][when]["deviating"] for name in SCORED)
        for sets, when in ((offered["judged"], "after"), now)
    )
    cost = " and ".join(f"{option} {needed}" for option, needed in tried["needs"].items())
    return (
        f"{offered['candidate']}: {after:,} instead of {instead:,} of these inputs near the"
        f" boundary deviate, at × {tried['latency_ratio']:.2f} of the time and {tried['bytes']:,}"
        f" bytes, which needs {cost}: {' '.join(offered['options'])}"
    )


def _candidates(document: Mapping[str, Any]) -> Table:
    """Return a table of what the candidates do to the inputs that choose."""
    devices = ", ".join(escape(one["name"]) for one in document["devices"])
    title = f"Deviations on the inputs to choose by, and time for an inference on {devices}"
    table = Table("candidate", "score", *SCORED, "time", "bytes", title=title)
    judged = [one for one in document["candidates"] if one["sets"] is not None]
    if judged:
        table.add_row("before", "1", *_deviating(judged[0], "before"), "× 1", "")
    for one in document["candidates"]:
        ratio = one["latency_ratio"]
        table.add_row(
            escape(one["name"]),
            "–" if one["score"] is None else f"{one['score']:.2f}",
            *_deviating(one, "after"),
            "–" if ratio is None else f"× {ratio:.2f}",
            "–" if one["bytes"] is None else f"{one['bytes']:,}",
        )
    return table


def _deviating(candidate: Mapping[str, Any], when: str) -> list[str]:
    """Return how many inputs of each set that counts deviate, `before` or `after`."""
    sets = candidate["sets"]
    return ["–" if sets is None else str(sets[name][when]["deviating"]) for name in SCORED]


def _print_front(console: Console, document: Mapping[str, Any]) -> None:
    """Print the candidates that no other one betters, with their costs, the fastest first."""
    by_name = {one["name"]: one for one in document["candidates"]}
    front = [one for name in document["front"] if (one := by_name.get(name)) and one["sets"]]
    said = ", ".join(
        f"{escape(one['name'])} (score {one['score']:.2f}, time × {one['latency_ratio']:.2f},"
        f" {one['bytes']:,} bytes)"
        for one in front
    )
    if said:
        console.print(f"Pareto front of score, time and bytes: {said}.", highlight=False)


def _print_blamed(console: Console, document: Mapping[str, Any]) -> None:
    """Print which block of the compressed model is to blame, by each way that there is."""
    searched = (one["details"].get("precision", {}) for one in document["candidates"])
    blamed = dict(next((one["blamed"] for one in searched if "blamed" in one), {}))
    if document["residual"] is not None:
        blamed["residual"] = document["residual"]["blamed"]
    said = ", ".join(
        f"{escape(block)} by {way}" for way, block in blamed.items() if block is not None
    )
    if said:
        console.print(f"Block to blame: {said}.", highlight=False)


def _judged(document: Mapping[str, Any]) -> Table:
    """Return a table of the chosen candidate on the inputs that judge."""
    counted = ("asked", "deviate", "big", "strict", "mended, broken", "p")
    title = f"{escape(str(document['chosen']))} on the inputs that judge"
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


def _print_end(console: Console, document: Mapping[str, Any], out: str) -> None:
    for one in document["on_devices"]:
        console.print(
            f"{escape(one['device'])}: {deviating_on(one, 'before'):,} of these inputs deviate"
            f" before, {deviating_on(one, 'after'):,} after; the label that the host foretold on"
            f" {one['same_labels']:,} of {one['asked']:,}",
            highlight=False,
        )
    repaired = document["repaired"]
    offer = offer_line(document)
    if repaired is None:
        console.print(f"No model is written: {escape(document['why'])}.", highlight=False)
        if offer is not None:
            console.print(escape(offer), highlight=False)
        console.print(f"The figures are in {escape(out)}/repair.json.", highlight=False)
        return
    console.print(
        f"{escape(out)}/{escape(repaired['file'])} is written, by"
        f" {escape(str(document['chosen']))}: {escape(document['why'])}. It has"
        f" {repaired['bytes_after'] - repaired['bytes_before']:+,} bytes, and takes"
        f" {escape(latency_change(repaired))}.",
        highlight=False,
    )
    if repaired["recipe"] is not None:
        console.print(
            "It computes in float or int16, at least in part; --target int8-only allows integers of"
            " 8 bits alone.",
            highlight=False,
        )
    if offer is not None:
        console.print(escape(offer), highlight=False)
    console.print(f"Search it: edgeflare search {escape(out)}", highlight=False)
