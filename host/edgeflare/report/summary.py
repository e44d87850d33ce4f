"""A run as Markdown for the summary of a CI job: GitHub shows it on the page of the run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from edgeflare.report.document import Document
from edgeflare.report.naming import ARMS, SORTS, class_name, number, sort
from edgeflare.report.ran import what_ran

ROWS = 10
"""Entries that a table lists; GitHub cuts off a summary of more than 1 MiB."""

STOPPED = "This is not the whole run: it was stopped before its end (`{}`)."

_MARKUP = re.compile(r"([\\`*_\[\]<>|~$&])")


def summary(document: Document) -> str:
    """Return a run as Markdown (GitHub's flavour)."""
    totals = document["totals"]
    searched = totals["seeds"] - totals["deviating_seeds"]
    counts = Counter(map(sort, document["findings"]))
    parts = [f"## EdgeFlare: {_text(document['pair']['name'])}", _verdict(document)]
    if document["stopped_by"]:
        parts.append("> [!WARNING]\n> " + STOPPED.format(document["stopped_by"]))
    parts += [f"> [!WARNING]\n> {_text(warning)}" for warning in document["warnings"]]
    facts = [
        ("seeds", f"{totals['seeds']:,}, of which {totals['deviating_seeds']:,} already deviate"),
        ("findings", f"{totals['findings']:,} of {searched:,} ({totals['success_rate']:.1%})"),
        ("causes", ", ".join(f"{counts[name]:,} {name}" for name in SORTS if counts[name]) or "–"),
        (
            "queries for a finding",
            f"{number(totals['mean_queries'])} mean, {number(totals['median_queries'])} median; "
            f"{number(totals['mean_device_queries'])} on the device",
        ),
        ("time", f"{totals['wall_seconds']:.1f} s"),
        ("flaky", f"{totals['flaky']:,}"),
    ]
    parts.append(_table(("", ""), facts))
    for key, title in (
        ("deviating_seeds", "Seeds that already deviate"),
        ("findings", "Findings, the strongest first"),
    ):
        if document[key]:
            parts += [f"### {title}", _entries(document, document[key])]
    ran = [
        (one.arm, *(_text(part) or "–" for part in (one.what, one.where, one.how)))
        for one in what_ran(document)
    ]
    parts += ["### What ran where", _table(("arm", "model", "where", "how"), ran)]
    return "\n\n".join(parts) + "\n"


def _verdict(document: Document) -> str:
    """Say the result in a sentence."""
    totals = document["totals"]
    arms = "twin and device" if document["find"] == "kernel" else "original and device"
    if not totals["findings"] and not totals["deviating_seeds"]:
        return f"✅ No input was found on which {arms} decide differently."
    searched = totals["seeds"] - totals["deviating_seeds"]
    return (
        f"❌ **{totals['findings']:,} of {searched:,} seeds** led to an input on which {arms} "
        f"decide differently; {totals['deviating_seeds']:,} deviate as they are."
    )


def _entries(document: Document, entries: Sequence[Document]) -> str:
    """Return a table of the strongest entries, those that failed first."""
    ranked = sorted(
        entries, key=lambda one: -1e9 if one["strength"] is None else -float(one["strength"])
    )
    arms = [arm for arm in ARMS if any(arm in entry["labels"] for entry in entries)]
    rows = [
        (
            str(entry["seed_id"]),
            *(_text(_decided(document, entry, arm)) for arm in arms),
            sort(entry),
            number(entry["strength"], 3),
            f"{entry['queries']:,}",
            number(entry["distortion"]["l2"], 0),
        )
        for entry in ranked[:ROWS]
    ]
    table = _table(("seed", *arms, "cause", "strength", "queries", "L2"), rows)
    rest = len(entries) - len(rows)
    return f"{table}\n\nand {rest:,} more" if rest else table


def _decided(document: Document, entry: Document, arm: str) -> str:
    """Return what an arm decided, or how it failed."""
    if arm not in entry["labels"]:
        return "–"
    label = entry["labels"][arm]
    return entry["kind"] if label is None else class_name(document["classes"], label)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _text(text: str) -> str:
    """Keep a text from being read as Markdown, or as anything but one line."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))
