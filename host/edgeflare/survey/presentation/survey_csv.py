"""A survey as a table for spreadsheets and data frames: `survey.csv`, a row for each slice.

What was found of rare events is the last row, where they were looked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from edgeflare.pages.answers.answer_form import class_name
from edgeflare.pages.csv_rows import csv_text
from edgeflare.statistics.mover import IntervalEstimate
from edgeflare.survey.rates.slices import SurveySlice
from edgeflare.survey.record.survey_document import SurveyDocument

_Cell = str | float | None

RATES = ("deviation", "deviation_strict", "kernel", "kernel_strict", "failed")

SHARES = ("compression", "compression_strict")

RIGHT = ("device_accuracy", "harmed", "helped")
"""Shares of the labelled items, which have no answers of their own beside them."""

INTERVAL = ("", "_low", "_high")

RARE = ("ceiling", "unseen_share")
"""Columns that only rare events have."""

ALONE = ("_alone", "_alone_low", "_alone_high")
"""Suffixes of the columns of a pooled rate for what the answers to its own items say."""

SLICE = ("name", "condition", "severity", "label", "group", "device", "items", "asked")
"""What a slice says of itself."""

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


def survey_csv(document: SurveyDocument) -> str:
    """Return the rates of a survey as comma-separated values with a header (RFC 4180)."""
    rows = _rows(document)
    return csv_text(COLUMNS, ({key: _cell(one) for key, one in row.items()} for row in rows))


def _rows(document: SurveyDocument) -> Iterator[dict[str, _Cell]]:
    yield _row(document, "overall", document.overall, document.confidence)
    yield _row(document, "unchanged", document.unchanged, document.confidence)
    for name, table in document.tables.items():
        for one in table.slices:
            yield _row(document, name, one, table.confidence)
    if (rare := document.rare) is not None:
        yield {
            "table": "rare",
            "name": "rare events",
            "asked": rare.device_queries,
            "confidence": document.confidence,
            **_interval("deviation" if document.has_original else "kernel", rare),
            **{key: getattr(rare, key) for key in RARE},
        }


def _row(
    document: SurveyDocument, table: str, one: SurveySlice, confidence: float
) -> dict[str, _Cell]:
    row: dict[str, _Cell] = {
        "table": table,
        **{key: getattr(one, key) for key in SLICE},
        "confidence": confidence,
    }
    if one.label is not None:
        row["class"] = class_name(document.classes, one.label)
    for key in RATES:
        if (rate := getattr(one, key)) is not None:
            row |= _interval(key, rate) | {f"{key}_seen": rate.seen}
            row |= _interval(f"{key}_alone", rate.alone)
    for key in SHARES:
        if (share := getattr(one, key)) is not None:
            row[key] = share.share
    if (accuracy := one.accuracy) is not None:
        row |= {"labelled": accuracy.twin.items, "twin_accuracy": accuracy.twin.share}
        if accuracy.original is not None:
            row["original_accuracy"] = accuracy.original.share
        row |= _interval("device_accuracy", accuracy.device)
        row |= _interval("accuracy_drop", accuracy.drop)
        row |= _interval("harmed", accuracy.harmed)
        row |= _interval("helped", accuracy.helped)
        if (far := accuracy.distance) is not None:
            row |= {"original_truth_distance": far.original, "twin_truth_distance": far.twin}
            row |= _interval("device_truth_distance", far.device)
    if (distance := one.distance) is not None:
        row |= {"twin_distance": distance.twin} | _interval("device_distance", distance.device)
    return row


def _interval(key: str, one: IntervalEstimate | None) -> dict[str, _Cell]:
    if one is None:
        return {}
    figures = (one.estimate, one.low, one.high)
    return {f"{key}{end}": figure for end, figure in zip(INTERVAL, figures, strict=True)}


def _cell(value: _Cell) -> _Cell:
    """Return a value as a cell has it: whole numbers without a fraction."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
