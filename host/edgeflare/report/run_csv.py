"""A run as a table for spreadsheets and data frames: `findings.csv`, a row for each entry."""

from __future__ import annotations

from edgeflare.pages.answers.answer_form import ARMS
from edgeflare.pages.csv_rows import csv_text
from edgeflare.report.entry_words import (
    decision_name,
    edited_words,
    is_structured,
    measured,
    views_of,
)
from edgeflare.run.harm import rank
from edgeflare.run.run_document import Finding, RunDocument, to_json

NAMES = {"deviating_seeds": "deviating seed", "findings": "finding"}
"""What the column `list` calls entries, where that is not what the document calls their list."""


def run_csv(document: RunDocument) -> str:
    """Return the entries of a run as comma-separated values with a header (RFC 4180)."""
    rows = (
        _row(document, entry, NAMES.get(key, key))
        for key, entries in document.lists.items()
        for entry in sorted(entries, key=rank)
    )
    return csv_text(columns(document), rows)


COLUMNS = (
    "list", "seed_id", "seed_name", "seed_label", "kind", "by_tie", "cause", "harm",
    "device_sides_with_original", "strength",
    *ARMS,
    *(f"{arm}_class" for arm in ARMS),
    *(f"{arm}_probability" for arm in ARMS),
    *(f"{arm}_tied" for arm in ARMS),
    "device_name", "queries", "device_queries", "seconds",
    "l2", "linf", "mean_abs", "changed", "nearness_db", "within", "strong",
    "refined", "strength_before", "l2_before",
    "operators", "verified", "file", "seed_file", "sha256",
)  # fmt: skip
"""The names of the columns of images. An arm's own column has its label, a number."""

_COPIED = (
    "seed_id", "seed_name", "seed_label", "seed_target", "kind", "by_tie", "cause",
    "harm", "device_sides_with_original", "strength", "nearness_db", "within", "strong",
    "queries", "device_queries", "seconds", "verified", "file", "seed_file", "sha256",
    "host_gradients", "translated_evaluations",
)  # fmt: skip


_WHITE_BOX = ("host_gradients", "translated_evaluations")


def columns(document: RunDocument) -> tuple[str, ...]:
    """Return the names of the columns: those of classified images, or of another domain and task.

    Scores, distances, texts, objects and masks follow the labels of the arms; what white-box
    queries cost follows the queries, where there were any.
    """
    entries = [finding for some in document.lists.values() for finding in some]
    further = (name for entry in entries for view in views_of(entry) for name in view.csv_columns)
    names = list(COLUMNS)
    at = names.index("device_name")
    names[at:at] = [name for name in dict.fromkeys(further) if name not in COLUMNS]
    if any(entry.seed_target for entry in entries):
        names.insert(names.index("seed_label") + 1, "seed_target")
    if any(entry.translated_evaluations or entry.host_gradients for entry in entries):
        at = names.index("seconds")
        names[at:at] = _WHITE_BOX
    return tuple(names)


def _row(document: RunDocument, entry: Finding, name: str) -> dict[str, object]:
    """Return a row; what is null or unknown stays empty."""
    refined = entry.refined
    fields = to_json(entry)
    row: dict[str, object] = {key: fields.get(key) for key in _COPIED} | fields["distortion"]
    row |= {
        "list": name,
        "device_name": entry.device,
        "operators": " ".join(entry.operators),
        "refined": refined is not None,
        "strength_before": refined and refined.strength_before,
        "l2_before": refined and refined.distortion_before.l2,
    }
    return row | _answers(document, entry)


def _answers(document: RunDocument, entry: Finding) -> dict[str, object]:
    """Return what the arms answered; labels of texts, objects and masks say nothing."""
    views = views_of(entry)
    view = measured(entry)
    if view is not None and not view.structured:  # values decide nothing: the distance alone
        return dict(view.csv_cells())
    row: dict[str, object] = {f"{arm}_tied": tied for arm, tied in entry.tied.items()}
    if is_structured(entry):
        for answer_form in views:
            row |= answer_form.csv_cells()
        if (edits := edited_words(document, entry)) is not None:
            row["edit_distance"] = edits
        return row if view is None else row | dict(view.csv_cells())
    for arm, label in entry.labels.items():
        row |= {arm: label, f"{arm}_tied": entry.tied.get(arm)}
        if label is not None:
            row[f"{arm}_class"] = decision_name(document, entry, arm)
            if given := entry.probabilities.get(arm):
                row[f"{arm}_probability"] = given[label]
    known = [cells for answer_form in views if (cells := answer_form.csv_cells())]
    if len(known) == 1:  # of several frames, no score is that of the clip
        row |= known[0]
    return row
