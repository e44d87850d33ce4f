"""What a repair by shifts found, as parts of the page: of `repair.json` v1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from edgeflare.repair.page.page_part import PagePart, PageTable
from edgeflare.repair.shifts.shift_terminal import REPAIRERS
from edgeflare.report.entry_names import class_name, number


def shift_parts(document: Mapping[str, Any]) -> Iterator[PagePart]:
    """Yield the repairers, the fresh inputs where there are some, and the shifts."""
    yield PagePart(
        "repairers",
        "Repairers",
        "Shares of the held-out inputs, a fifth of the seeds at a time. Net: by how many points"
        " deviations fall over triggers, agreeing inputs and seeds, with its 95 % interval. As"
        " they come: deviations after over those before, on inputs that are sampled without the"
        " original.",
        [repairer_table(document)],
    )
    if document["test"] is not None:
        yield PagePart(
            "fresh",
            "Fresh inputs",
            f"{document['test']['inputs']:,} inputs that nobody searched for.",
            [_fresh(document["test"])],
        )
    shifts = document["shifts"]
    yield PagePart(
        "shifts",
        "Shifts",
        "By how many steps the boundary between two classes moves in favour of the first;"
        f" a step is {shifts['step']:g}.",
        [_shifts(document)],
    )


def repairer_table(document: Mapping[str, Any]) -> PageTable:
    """Return a table of what each repairer does to held-out inputs."""
    header = (
        "repairer",
        "repaired",
        "induced on seeds",
        "induced on agreeing",
        "net",
        "as they come",
    )
    rows = []
    for name, one in document["repairers"].items():
        shares = (one[key] for key in ("repair_ratio", "inducing_ratio", "induced_agreeing"))
        value, low, high = (100 * one["net"][key] for key in ("value", "low", "high"))
        ratio = one["unled_ratio"]
        rows.append((
            REPAIRERS[name],
            *(f"{share:.1%}" for share in shares),
            f"{value:+.1f} ({low:+.1f} … {high:+.1f})",
            "–" if ratio is None else f"× {ratio:.2f}",
        ))  # fmt: skip
    return PageTable("On held-out folds", header, rows)


def _fresh(test: Mapping[str, Any]) -> PageTable:
    rows = []
    for name in ("before", *REPAIRERS):
        one = test[name]
        accuracy = None if one["accuracy"] is None else 100 * one["accuracy"]
        counts = (f"{one[key]:,}" for key in ("deviations", "strict"))
        rows.append((REPAIRERS.get(name, name), *counts, number(accuracy, 2)))
    header = ("model", "deviating", "strict", "accuracy in %")
    return PageTable("Fresh inputs", header, rows)


def _shifts(document: Mapping[str, Any]) -> PageTable:
    rows = [
        (*(class_name(document["classes"], label) for label in one["classes"]), f"{one['steps']:+}")
        for one in document["shifts"]["pairs"]
    ]
    return PageTable("Shifts", ("class", "against", "steps"), rows)
