"""What only a replay shows on a terminal: what is mended, and what is new."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from edgeflare.report.entry_names import last_parts
from edgeflare.report.figure_lines import duplicate_lines, kind_lines
from edgeflare.run.replay_outcome import deviating_now, tried
from edgeflare.run.run_document import ChangedKind, ReplayOutcome, RunDocument

REPLAY_TITLES = {
    "deviating_seeds": "Seeds that deviate now",
    "findings": "Findings that deviate now",
    "flaky": "Unstable: deviating in some repetitions, or not always alike",
    "unverified": "Not tried yet: go on with --resume",
}
"""Of the tables of entries, by the key of the document."""

_MOST_IDS = 16


def replay_totals(document: RunDocument, replay: ReplayOutcome) -> Table:
    """Return what became of the inputs that were tried again."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    of = replay.of
    table.add_row("replay of", f"{last_parts(of.run)} (on {', '.join(of.devices)})")
    table.add_row("compressed model", _compressed(document, replay))
    table.add_row("deviating now", f"{deviating_now(document)} of {tried(document)} tried again")
    table.add_row("unstable", str(len(document.flaky)))
    mended = [entry.seed_id for entry in replay.mended]
    worse = replay.deviating_seeds
    table.add_row("mended", _ids([seed_id for seed_id in mended if seed_id not in worse]))
    but = [seed_id for seed_id in mended if seed_id in worse]
    if but:
        table.add_row("mended, but its seed deviates", _ids(but))
    for name, line in (*kind_lines(document), *duplicate_lines(document.totals)):
        table.add_row(name, line)
    changes = replay.changed_kind
    if changes:
        table.add_row("of another kind now", "; ".join(map(_change, changes[:_MOST_IDS])))
    table.add_row("seeds that deviate only now", _ids(worse))
    if replay.baseline is not None:
        table.add_row(f"new since {last_parts(replay.baseline)}", _ids(replay.new))
    return table


def _change(change: ChangedKind) -> str:
    return f"seed {change.seed_id}: {change.before} → {change.now}"


def _compressed(document: RunDocument, replay: ReplayOutcome) -> str:
    now, then = document.pair.get("compressed", ""), replay.of.compressed
    if now == then:
        return last_parts(now)
    if last_parts(now) == last_parts(then):
        return f"{now} (then {then})"
    return f"{last_parts(now)} (then {last_parts(then)})"


def _ids(seed_ids: Sequence[int]) -> str:
    """Return how many, and which seeds they are of."""
    if not seed_ids:
        return "0"
    shown = ", ".join(map(str, seed_ids[:_MOST_IDS]))
    return f"{len(seed_ids)} (seed {shown}{', …' if len(seed_ids) > _MOST_IDS else ''})"
