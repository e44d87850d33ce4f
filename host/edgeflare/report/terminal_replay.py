"""What only a replay shows on a terminal: what is mended, and what is new."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from edgeflare.report.document import Document
from edgeflare.report.duplicates import in_words

REPLAY_TITLES = {
    "deviating_seeds": "Seeds that still deviate",
    "findings": "Findings that still deviate, the strongest first",
    "flaky": "Unstable: deviating in some repetitions, or not always alike",
    "unverified": "Not tried yet: go on with --resume",
}
"""Of the tables of entries, by the key of the document."""

_MOST_IDS = 16


def replay_totals(document: Document) -> Table:
    """Return what became of the inputs that were tried again."""
    replay = document["replay"]
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    still = len(document["findings"]) + len(document["deviating_seeds"])
    of = replay["of"]
    table.add_row("replay of", f"{of['run']} (on {', '.join(of['devices'])})")
    table.add_row("compressed model", _compressed(document))
    table.add_row("still deviating", f"{still} of {document['totals']['seeds']}")
    table.add_row("unstable", str(len(document["flaky"])))
    mended = [entry["seed_id"] for entry in replay["mended"]]
    worse = replay["deviating_seeds"]
    table.add_row("mended", _ids([seed_id for seed_id in mended if seed_id not in worse]))
    but = [seed_id for seed_id in mended if seed_id in worse]
    if but:
        table.add_row("mended, but its seed deviates", _ids(but))
    duplicates = in_words(document["totals"])
    if duplicates:
        table.add_row("duplicates", duplicates)
    changes = replay["changed_kind"]
    if changes:
        table.add_row("of another kind now", "; ".join(map(_change, changes[:_MOST_IDS])))
    table.add_row("seeds that deviate only now", _ids(worse))
    if replay["baseline"] is not None:
        table.add_row(f"new since {replay['baseline']}", _ids(replay["new"]))
    return table


def _change(change: Document) -> str:
    return f"seed {change['seed_id']}: {change['before']} → {change['now']}"


def _compressed(document: Document) -> str:
    now, then = document["pair"]["compressed"], document["replay"]["of"]["compressed"]
    return now if now == then else f"{now} (then {then})"


def _ids(seed_ids: Sequence[int]) -> str:
    """Return how many, and which seeds they are of."""
    if not seed_ids:
        return "0"
    shown = ", ".join(map(str, seed_ids[:_MOST_IDS]))
    return f"{len(seed_ids)} (seed {shown}{', …' if len(seed_ids) > _MOST_IDS else ''})"
