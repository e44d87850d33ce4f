"""A run as a table for spreadsheets and data frames: `findings.csv`, a row for each entry."""

from __future__ import annotations

import csv
import io
from typing import Any

from edgeflare.core.nearness_measure import PSNR
from edgeflare.report.entry_names import ARMS, class_name
from edgeflare.run.harm import rank
from edgeflare.run.nearness import measure_name
from edgeflare.run.run_document import Finding, RunDocument, to_json
from edgeflare.untrusted_text import for_csv

NAMES = {"deviating_seeds": "deviating seed", "findings": "finding"}
"""What the column `list` calls entries, where that is not what the document calls their list."""


def csv_table(document: RunDocument) -> str:
    """Return the entries of a run as comma-separated values with a header (RFC 4180)."""
    text = io.StringIO()
    rows = [
        _row(document, entry, NAMES.get(key, key))
        for key, entries in document.lists.items()
        for entry in sorted(entries, key=rank)
    ]
    table = csv.DictWriter(text, columns(document), extrasaction="ignore")
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
"""The names of the columns of images. An arm's own column has its label, a number."""

_COPIED = (
    "seed_id", "seed_name", "seed_label", "kind", "cause", "harm", "device_sides_with_original",
    "strength", "psnr", "nearness_db", "within", "strong", "queries", "device_queries", "seconds",
    "verified", "image", "seed_image", "sha256",
)  # fmt: skip


def columns(document: RunDocument) -> tuple[str, ...]:
    """Return the names of the columns: those of images, or with another measure than PSNR."""
    if measure_name(document) == PSNR.name:
        return COLUMNS
    return tuple("nearness_db" if name == "psnr" else name for name in COLUMNS)


def _row(document: RunDocument, entry: Finding, name: str) -> dict[str, Any]:
    """Return a row; what is null or unknown stays empty."""
    refined = entry.refined
    fields = to_json(entry)
    row = {key: fields.get(key) for key in _COPIED} | fields["distortion"]
    row |= {
        "list": name,
        "device_name": entry.device,
        "operators": " ".join(entry.operators),
        "refined": refined is not None,
        "strength_before": refined and refined.strength_before,
        "l2_before": refined and refined.distortion_before.l2,
    }
    for arm, label in entry.labels.items():
        row[arm] = label
        row[f"{arm}_tied"] = entry.tied.get(arm)
        if label is not None:
            row[f"{arm}_class"] = class_name(document.classes, label)
            row[f"{arm}_probability"] = entry.probabilities[arm][label]
    return {key: for_csv(value) if isinstance(value, str) else value for key, value in row.items()}
