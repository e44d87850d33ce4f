"""Whether what a run found is more than was allowed: what its exit code says."""

from __future__ import annotations

from typing import Literal

from edgeflare.report.document import Document

FailOn = Literal["any", "kernel", "none"]


def deviation_rate(document: Document, fail_on: FailOn) -> float:
    """Return the share of seeds with a deviation that counts: in searching, or the seed itself.

    With "kernel" only those count whose cause is the kernels, or on which the device failed; with
    "none" none does.
    """
    return len(counting(document, fail_on)) / max(1, int(document["totals"]["seeds"]))


def counting(document: Document, fail_on: FailOn) -> list[Document]:
    """Return the entries that count: deviating seeds, then findings."""
    return [
        entry
        for entry in (*document["deviating_seeds"], *document["findings"])
        if fail_on == "any" or (fail_on == "kernel" and _of_the_device(entry))
    ]


def _of_the_device(entry: Document) -> bool:
    failed = entry["kind"] != "deviation" and entry["labels"].get("device") is None
    return failed or bool(entry["cause"] == "kernel")


def searched_nothing(document: Document) -> bool:
    """Whether a run was stopped before the search from any seed had ended, so it shows nothing."""
    return bool(document["stopped_by"]) and not document["totals"]["searched"]


def exceeds(document: Document, fail_on: FailOn, allowed_rate: float) -> bool:
    """Whether a run found more than was allowed."""
    return deviation_rate(document, fail_on) > allowed_rate
