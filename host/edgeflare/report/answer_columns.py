"""What tables of a run's entries say of the answers: their title, columns and cells."""

from __future__ import annotations

from collections.abc import Iterable

from edgeflare.report.answer_words import answer_words, decided, distance_view
from edgeflare.report.entry_names import ARMS
from edgeflare.run.run_document import Finding, RunDocument

DISTANCE, TOLERANCES = "distance", "tolerances"


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
        title = f"{title}, {order}"
    view = next(filter(None, map(distance_view, entries)), None)
    return title if view is None else f"{title}; {view.measure}, tolerance {view.tolerance:g}"


def answer_columns(entries: Iterable[Finding]) -> tuple[str, ...]:
    """Return the columns of a table of entries that say what was answered: arms, or distances."""
    entries = tuple(entries)
    if any(distance_view(entry) for entry in entries):
        return (DISTANCE, TOLERANCES)
    return tuple(arm for arm in ARMS if any(arm in entry.labels for entry in entries))


def answer_cell(document: RunDocument, entry: Finding, column: str) -> str:
    """Return what one of `answer_columns` says of an entry."""
    if column not in (DISTANCE, TOLERANCES):
        return decided(document, entry, column)
    view = distance_view(entry)
    if view is None or view.distance is None:
        return "–"
    return f"{view.distance if column == DISTANCE else view.distance / view.tolerance:.4g}"
