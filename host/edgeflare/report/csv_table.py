"""A run as a table for spreadsheets and data frames: `findings.csv`, a row for each entry."""

from __future__ import annotations

import csv
import io
from typing import Any

from edgeflare.report.entry_names import ARMS, class_name
from edgeflare.run.harm import rank
from edgeflare.run.run_document import Document
from edgeflare.untrusted_text import for_csv

LISTS = {
    "deviating_seeds": "deviating seed",
    "findings": "finding",
    "flaky": "flaky",
    "unverified": "unverified",
}
"""The lists of a document, and what the column `list` calls their entries; a replay's mended
inputs are "mended"."""


def csv_table(document: Document) -> str:
    """Return the entries of a run as comma-separated values with a header (RFC 4180)."""
    text = io.StringIO()
    mended = document.get("replay", {"mended": []})["mended"]
    lists = [(name, document[key]) for key, name in LISTS.items()] + [("mended", mended)]
    rows = [
        _row(document, entry, name)
        for name, entries in lists
        for entry in sorted(entries, key=rank)
    ]
    table = csv.DictWriter(text, COLUMNS)
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


COLUMNS = (
    "list", "seed_id", "seed_name", "seed_label", "kind", "cause", "harm",
    "device_sides_with_original", "strength",
    *ARMS,
    *(f"{arm}_class" for arm in ARMS),
    *(f"{arm}_probability" for arm in ARMS),
    *(f"{arm}_tied" for arm in ARMS),
    "device_name", "queries", "device_queries", "seconds",
    "l2", "linf", "mean_abs", "changed", "psnr", "within", "strong",
    "refined", "strength_before", "l2_before",
    "operators", "verified", "image", "seed_image", "sha256",
)  # fmt: skip
"""The names of the columns. An arm's own column has its label, a number."""

_COPIED = (
    "seed_id", "seed_label", "kind", "cause", "device_sides_with_original", "strength",
    "queries", "device_queries", "seconds", "verified", "image", "seed_image", "sha256",
)  # fmt: skip


def _row(document: Document, entry: Document, name: str) -> dict[str, Any]:
    """Return a row; what is null or unknown stays empty."""
    refined = entry.get("refined")
    row: dict[str, Any] = {key: entry[key] for key in _COPIED}
    row |= entry["distortion"]
    row |= {
        "list": name,
        "seed_name": entry.get("seed_name"),
        **{key: entry.get(key) for key in ("harm", "psnr", "within", "strong")},
        "device_name": entry["device"],
        "operators": " ".join(entry["operators"]),
        "refined": refined is not None,
        "strength_before": refined and refined["strength_before"],
        "l2_before": refined and refined["distortion_before"]["l2"],
    }
    for arm, label in entry["labels"].items():
        row[arm] = label
        row[f"{arm}_tied"] = entry["tied"].get(arm)
        if label is not None:
            row[f"{arm}_class"] = class_name(document["classes"], label)
            row[f"{arm}_probability"] = entry["probabilities"][arm][label]
    return {key: for_csv(value) if isinstance(value, str) else value for key, value in row.items()}
