"""What tables of a run's entries say of the answers: their title, columns and cells."""

from __future__ import annotations

from collections.abc import Iterable

from edgeflare.core.answer_view import SegmentationView, TranscriptView
from edgeflare.report.answer_words import (
    answer_words,
    decided,
    distance_view,
    edited_words,
    mask_view,
)
from edgeflare.report.entry_names import ARMS
from edgeflare.run.nearness import counts
from edgeflare.run.run_document import Finding, RunDocument

DISTANCE, TOLERANCES = "distance", "tolerances"
MEAN_IOU, REGION = "mean IoU", "region"
EDITS = "edits"


def table_title(document: RunDocument, key: str, title: str) -> str:
    """Return the title of a table of entries, with their order and the measure of distances.

    Args:
        document: the run.
        key: of the list of entries; findings stand in the order of `worst_first`.
        title: what the entries are.

    """
    entries = document.lists[key]
    if key == "findings":
        labelled = any(entry.harm for entry in entries)
        order = "the most harmful first" if labelled else answer_words(document.pair).strongest
        if {counts(entry) for entry in entries} == {False, True}:
            rest = order.removesuffix(" first")
            order = f"those as near and strong as asked for first, then {rest}"
        title = f"{title}, {order}"
    masks = next(filter(None, map(mask_view, entries)), None)
    if masks is not None:
        region = (
            "" if masks.least_region is None else f", region from {masks.least_region:,} pixels"
        )
        return f"{title}; least mean IoU {masks.least_iou:g}{region}"
    view = next(filter(None, map(distance_view, entries)), None)
    return title if view is None else f"{title}; {view.measure}, tolerance {view.tolerance:g}"


def answer_columns(entries: Iterable[Finding]) -> tuple[str, ...]:
    """Return the columns of a table of entries that say what was answered: arms, or distances.

    Texts have their edit distance behind the arms.
    """
    entries = tuple(entries)
    if any(map(mask_view, entries)):
        return (MEAN_IOU, REGION)
    if any(distance_view(entry) for entry in entries):
        return (DISTANCE, TOLERANCES)
    views = [view for entry in entries for view in entry.answers or ()]
    arms = tuple(arm for arm in ARMS if any(arm in entry.labels for entry in entries))
    return (*arms, EDITS) if any(isinstance(one, TranscriptView) for one in views) else arms


def answer_cell(document: RunDocument, entry: Finding, column: str) -> str:
    """Return what one of `answer_columns` says of an entry."""
    if column in (MEAN_IOU, REGION):
        return _mask_cell(mask_view(entry), column)
    if column == EDITS:
        edits = edited_words(document, entry)
        return "–" if edits is None else str(edits)
    if column not in (DISTANCE, TOLERANCES):
        return decided(document, entry, column)
    view = distance_view(entry)
    if view is None or view.distance is None:
        return "–"
    return f"{view.distance if column == DISTANCE else view.distance / view.tolerance:.4g}"


def _mask_cell(view: SegmentationView | None, column: str) -> str:
    value = None if view is None else view.mean_iou if column == MEAN_IOU else view.region
    return "–" if value is None else f"{value:.4g}" if column == MEAN_IOU else f"{value:,}"
