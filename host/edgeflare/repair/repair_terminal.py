"""A repair on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from edgeflare.repair.judging.judged_inputs import COUNT
from edgeflare.repair.judging.judgement import SCORED, Judgement
from edgeflare.repair.planned_repair import PlannedRepair
from edgeflare.repair.repair_document import RepairDocument, SearchComparison, TriedCandidate
from edgeflare.repair.shift_details import REPAIRERS, JudgedRepairers, ShiftDetails


def print_repair(console: Console, document: RepairDocument, out: str) -> None:
    """Print the candidates, the judgement of the chosen one, and what was written."""
    for one in document.candidates:
        if one.details.shifts is not None:
            _print_shifts(console, one.details.shifts)
    console.print(str(document.seeds), highlight=False)
    console.print(_candidates(document))
    for one in document.candidates:
        if one.set_aside is not None:
            console.print(
                f"{escape(one.name)} is set aside: {escape(one.set_aside)}", highlight=False
            )
    _print_front(console, document)
    _print_blamed(console, document)
    if document.judged is not None:
        console.print(_judged(str(document.chosen), document.judged))
    _print_end(console, document, out)
    console.print(f"See it: edgeflare report {escape(out)} --html", highlight=False, soft_wrap=True)


def print_planned_repair(console: Console, planned: PlannedRepair, out: str) -> None:
    """Print what a repair would do."""
    console.print(
        f"{planned.seeds}. Candidates: {', '.join(planned.candidates)}; on"
        f" {escape(', '.join(planned.devices))}. Each is judged on up to {COUNT:,} inputs a set,"
        f" and chosen within --max-size {escape(planned.max_size)} and --max-latency"
        f" {escape(planned.max_latency)}. "
        f"Nothing is done, and nothing written to {escape(out)}.",
        highlight=False,
    )


def print_repaired_search(console: Console, again: SearchComparison) -> None:
    """Print the run and the search of the repaired model side by side."""
    table = Table("searched again", "deviating seeds", "findings", "success", "mean queries")
    for name, one in (("before", again.before), ("after", again.after)):
        table.add_row(
            name,
            str(one.deviating_seeds),
            str(one.findings),
            "–" if one.success_rate is None else f"{one.success_rate:.1%}",
            "–" if one.mean_queries is None else f"{one.mean_queries:.1f}",
        )
    console.print(table)


def offer_line(document: RepairDocument) -> str | None:
    """Return what more cost than the limits allow would give; None where that is nothing.

    The counts are those of the inputs that judge, and of the written model or the one before.
    """
    offered = document.offered
    tried = None if offered is None else document.tried(offered.candidate)
    if offered is None or tried is None:
        return None
    after = sum(one.after.deviating for one in offered.judged.scored)
    if document.written and document.judged is not None:
        instead = sum(one.after.deviating for one in document.judged.scored)
    else:
        instead = sum(one.before.deviating for one in offered.judged.scored)
    cost = " and ".join(f"{option} {needed}" for option, needed in tried.needs.items())
    return (
        f"{offered.candidate}: {after:,} instead of {instead:,} of these inputs near the boundary"
        f" deviate, at {ratio_text(tried.latency_ratio)} of the time and {bytes_text(tried.bytes)}"
        f" bytes, which needs {cost}: {' '.join(offered.options)}"
    )


def ratio_text(ratio: float | None) -> str:
    """Return how many times as long an inference takes: "× 1.02"."""
    return "–" if ratio is None else f"× {ratio:.2f}"


def bytes_text(size: int | None) -> str:
    """Return the size of a file: "43,600"."""
    return "–" if size is None else f"{size:,}"


def _print_shifts(console: Console, shifts: ShiftDetails) -> None:
    """Print the effect of each repairer on held-out folds."""
    inputs, queries = shifts.inputs, shifts.queries
    console.print(
        f"{inputs.triggers} triggers and their seeds, {inputs.near_boundary_agreeing:,}"
        f" near-boundary inputs that agree, {inputs.near_boundary_deviating:,} that do not"
        f" ({queries.known + queries.near_boundary:,} queries)",
        highlight=False,
    )
    if inputs.not_reproduced:
        console.print(
            f"{inputs.not_reproduced} triggers are left out: they do not deviate here and now",
            highlight=False,
        )
    table = Table(
        "on held-out folds",
        "repaired",
        "induced on seeds",
        "induced on agreeing",
        "net (95 % interval)",
        "as they come",
    )
    for row in repairer_rows(shifts.repairers):
        table.add_row(*row)
    console.print(table)


def repairer_rows(repairers: JudgedRepairers) -> list[Sequence[str]]:
    """Return what each repairer does to held-out inputs, in words.

    Returns:
        A row for each: the repairer, shares of triggers repaired and of seeds and agreeing inputs
        induced, the net with its interval, and deviations after over those before as they come.

    """
    return [
        (
            REPAIRERS[name],
            f"{one.repair_ratio:.1%}",
            f"{one.inducing_ratio:.1%}",
            f"{one.induced_agreeing:.1%}",
            f"{100 * one.net.value:+.1f} ({100 * one.net.low:+.1f} … {100 * one.net.high:+.1f})",
            ratio_text(one.unled_ratio),
        )
        for name, one in repairers.items()
    ]


def _candidates(document: RepairDocument) -> Table:
    """Return a table of what the candidates do to the inputs that choose."""
    devices = ", ".join(escape(one.name) for one in document.devices)
    title = f"Deviations on the inputs to choose by, and time for an inference on {devices}"
    table = Table("candidate", "score", *SCORED, "time", "bytes", title=title)
    judged = [one.sets for one in document.candidates if one.sets is not None]
    for sets in judged[:1]:
        table.add_row("before", "1", *(str(one.before.deviating) for one in sets.scored), "× 1", "")
    for one in document.candidates:
        after = [] if one.sets is None else [str(each.after.deviating) for each in one.sets.scored]
        table.add_row(
            escape(one.name),
            _score(one),
            *(after or ["–"] * len(SCORED)),
            ratio_text(one.latency_ratio),
            bytes_text(one.bytes),
        )
    return table


def _score(one: TriedCandidate) -> str:
    return "–" if one.score is None else f"{one.score:.2f}"


def _print_front(console: Console, document: RepairDocument) -> None:
    """Print the candidates that no other one betters, with their costs, the fastest first."""
    front = [one for name in document.front if (one := document.tried(name)) and one.sets]
    said = ", ".join(
        f"{escape(one.name)} (score {_score(one)}, time {ratio_text(one.latency_ratio)},"
        f" {bytes_text(one.bytes)} bytes)"
        for one in front
    )
    if said:
        console.print(f"Pareto front of score, time and bytes: {said}.", highlight=False)


def _print_blamed(console: Console, document: RepairDocument) -> None:
    """Print which block of the compressed model is to blame, by each way that there is."""
    searched = (one.details.precision for one in document.candidates)
    blamed = dict(next((one.blamed for one in searched if one and one.blamed is not None), {}))
    if document.residual is not None:
        blamed["residual"] = document.residual.blamed
    said = ", ".join(
        f"{escape(block)} by {way}" for way, block in blamed.items() if block is not None
    )
    if said:
        console.print(f"Block to blame: {said}.", highlight=False)


def _judged(chosen: str, judged: Judgement) -> Table:
    """Return a table of the chosen candidate on the inputs that judge."""
    counted = ("asked", "deviate", "big", "strict", "mended, broken", "p")
    table = Table("set", *counted, title=f"{escape(chosen)} on the inputs that judge")
    for name, one in judged.by_set.items():
        before, after = one.before, one.after
        table.add_row(
            name,
            f"{after.asked:,}",
            f"{before.deviating} → {after.deviating}",
            f"{before.big} → {after.big}",
            f"{before.strict} → {after.strict}",
            f"{one.mended}, {one.broken}",
            f"{one.p:.1g}",
        )
    return table


def _print_end(console: Console, document: RepairDocument, out: str) -> None:
    for one in document.on_devices:
        before, after = one.deviating
        console.print(
            f"{escape(one.device)}: {before:,} of these inputs deviate before, {after:,} after;"
            f" the label that the host foretold on {one.same_labels:,} of {one.asked:,}",
            highlight=False,
        )
    repaired, offer = document.repaired, offer_line(document)
    if repaired is None:
        console.print(f"No model is written: {escape(document.why)}.", highlight=False)
        if offer is not None:
            console.print(escape(offer), highlight=False)
        console.print(f"The figures are in {escape(out)}/repair.json.", highlight=False)
        return
    console.print(
        f"{escape(out)}/{escape(repaired.file)} is written, by"
        f" {escape(str(document.chosen))}: {escape(document.why)}. It has"
        f" {repaired.bytes_after - repaired.bytes_before:+,} bytes, and takes"
        f" {escape(repaired.change)}.",
        highlight=False,
    )
    if repaired.recipe is not None:
        console.print(
            "It computes in float or int16, at least in part; --target int8-only allows integers of"
            " 8 bits alone.",
            highlight=False,
        )
    if offer is not None:
        console.print(escape(offer), highlight=False)
    console.print(f"Search it: edgeflare search {escape(out)}", highlight=False)
