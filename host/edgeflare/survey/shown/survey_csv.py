"""A survey as a table for spreadsheets and data frames: `survey.csv`, a row for each slice.

What was found of rare events is the last row, where they were looked for.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from edgeflare.report.entry_names import class_name
from edgeflare.survey.shown.survey_words import rate_key
from edgeflare.untrusted_text import for_csv

RATES = ("deviation", "deviation_strict", "kernel", "kernel_strict", "failed")

SHARES = ("compression", "compression_strict")

RIGHT = ("device_accuracy", "harmed", "helped")
"""Shares of the labelled items, which have no answers of their own beside them."""

INTERVAL = ("", "_low", "_high")

RARE = ("ceiling", "unseen_share")
"""Of rare events alone."""

ALONE = ("_alone", "_alone_low", "_alone_high")
"""Of a rate that is pooled: what the answers to its own items say."""

COLUMNS = (
    "table", "name", "condition", "severity", "label", "class", "group", "device", "items", "asked",
    "confidence",
    *(f"{rate}{end}" for rate in RATES for end in (*INTERVAL, "_seen", *ALONE)),
    *SHARES,
    "labelled", "original_accuracy", "twin_accuracy",
    *(f"{name}{end}" for name in (*RIGHT, "accuracy_drop") for end in INTERVAL),
    "original_truth_distance", "twin_truth_distance",
    *(f"device_truth_distance{end}" for end in INTERVAL),
    "twin_distance",
    *(f"device_distance{end}" for end in INTERVAL),
    *RARE,
)  # fmt: skip
"""The names of the columns; a cell is empty where the figure is null in the document."""


def survey_csv(document: Mapping[str, Any]) -> str:
    """Return the rates of a survey as comma-separated values with a header (RFC 4180)."""
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS)
    table.writeheader()
    table.writerows(_rows(document))
    return text.getvalue()


def _rows(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name in ("overall", "unchanged"):
        yield _row(document, name, document[name], document["confidence"])
    for name in ("by_condition", "by_severity", "by_cell", "by_class", "by_group", "by_device"):
        table = document[name]
        for one in table["slices"]:
            yield _row(document, name, one, table["confidence"])
    if (rare := document["rare"]) is not None:
        yield {
            "table": "rare",
            "name": "rare events",
            "asked": rare["device_queries"],
            "confidence": document["confidence"],
            **_interval(rate_key(document), rare),
            **{key: rare[key] for key in RARE},
        }


def _row(
    document: Mapping[str, Any], table: str, one: Mapping[str, Any], confidence: float
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "table": table,
        **{key: one[key] for key in ("name", "condition", "severity", "label", "group", "device")},
        **{key: one[key] for key in ("items", "asked")},
        "confidence": confidence,
    }
    if one["label"] is not None:
        row["class"] = class_name(document["classes"], one["label"])
    for key in RATES:
        row |= _interval(key, one[key])
        row[f"{key}_seen"] = None if one[key] is None else one[key]["seen"]
        row |= _interval(f"{key}_alone", one[key] and one[key]["alone"])
    row |= {key: one[key] and one[key]["share"] for key in SHARES}
    if (accuracy := one["accuracy"]) is not None:
        row |= {
            "labelled": accuracy["twin"]["items"],
            "original_accuracy": accuracy["original"] and accuracy["original"]["share"],
            "twin_accuracy": accuracy["twin"]["share"],
        }
        row |= _interval("device_accuracy", accuracy["device"])
        row |= _interval("accuracy_drop", accuracy["drop"])
        row |= _interval("harmed", accuracy["harmed"])
        row |= _interval("helped", accuracy["helped"])
        if (far := accuracy["distance"]) is not None:
            row |= {f"{arm}_truth_distance": far[arm] for arm in ("original", "twin")}
            row |= _interval("device_truth_distance", far["device"])
    if (distance := one["distance"]) is not None:
        row |= {"twin_distance": distance["twin"]}
        row |= _interval("device_distance", distance["device"])
    return {key: for_csv(value) if isinstance(value, str) else value for key, value in row.items()}


def _interval(key: str, one: Mapping[str, Any] | None) -> dict[str, Any]:
    if one is None:
        return {}
    return {f"{key}{end}": one[part] for end, part in zip(INTERVAL, _PARTS, strict=True)}


_PARTS = ("estimate", "low", "high")
