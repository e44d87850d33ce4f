"""How often the compared arms deviate on images as they are: the seeds, and held-out images.

A search shows what can be found, these figures how often it happens by itself; so they stand above
all that was mutated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from edgeflare.run.exact_interval import exact_interval
from edgeflare.run.harm import count_harms, harm_of, in_words
from edgeflare.run.journal import HELD_OUT_KEY, Journal
from edgeflare.run.journal_rows import Role
from edgeflare.run.run_header import RunHeader
from edgeflare.run.stored_answers import from_rows


def unmutated(journal: Journal, about: RunHeader) -> dict[str, Any]:
    """Return the figures of the seeds and, where there are some, of the held-out images."""
    told = journal.about().get(HELD_OUT_KEY)
    figures = {"seeds": _figures(journal, about, "seed", about.labels)}
    if told:
        figures["test"] = {"path": told["path"]} | _figures(journal, about, "test", told["labels"])
    return figures


def _figures(
    journal: Journal, about: RunHeader, role: Role, labels: Sequence[int] | None
) -> dict[str, Any]:
    goal = about.plan.goal
    rows = [rows[0] for rows in journal.answers(role).values()]
    harms = [
        harm_of(goal, one.outcome, None if labels is None else labels[row.seed_id])
        for row, one in zip(rows, from_rows(about.reading, rows), strict=True)
        if goal.met(one.outcome)
    ]
    images, deviating = len(rows), len(harms)
    low, high = exact_interval(deviating, images) if images else (0.0, 1.0)
    return {
        "images": images,
        "deviating": deviating,
        "rate": deviating / max(1, images),
        "low": low,
        "high": high,
        "harm": None if labels is None else count_harms(harms),
    }


def in_lines(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the figures to read: what images, and what of them; none of older runs and replays."""
    lines = []
    for key, name in (("seeds", "unmutated seeds"), ("test", "unmutated test images")):
        figures = document.get("unmutated", {}).get(key)
        if not figures or not figures["images"]:
            continue
        line = (
            f"{figures['deviating']:,} of {figures['images']:,} deviate ({figures['rate']:.2%}, "
            f"95 % interval {figures['low']:.2%} to {figures['high']:.2%})"
        )
        if figures["harm"]:
            line += f": {in_words(figures['harm'])}"
        lines.append((name, line))
    return lines
