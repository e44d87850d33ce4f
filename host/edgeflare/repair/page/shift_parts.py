"""What a repair by shifts found, as parts of the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from edgeflare.repair.page.page_part import PagePart, PageTable
from edgeflare.repair.shifts.shift_terminal import REPAIRERS
from edgeflare.report.entry_names import class_name


def shift_parts(
    shifts: Mapping[str, Any], classes: Sequence[str], suffix: str = ""
) -> Iterator[PagePart]:
    """Yield what each repairer does, and the shifts.

    Args:
        shifts: the section `shifts` of a candidate's details.
        classes: names of the classes, perhaps none.
        suffix: ends the names of the parts.

    """
    yield PagePart(
        f"repairers{suffix}",
        "Repairers",
        "Shares of the held-out inputs, a fifth of the seeds at a time. Net: by how many points"
        " deviations fall over triggers, agreeing inputs and seeds, with its 95 % interval. As"
        " they come: deviations after over those before, on inputs that are sampled without the"
        " original.",
        [_repairer_table(shifts)],
    )
    yield PagePart(
        f"shifts{suffix}",
        "Shifts",
        "By how many steps the boundary between two classes moves in favour of the first;"
        f" a step is {shifts['shifts']['step']:g}.",
        [_shifts(shifts["shifts"], classes)],
    )


def _repairer_table(shifts: Mapping[str, Any]) -> PageTable:
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
    for name, one in shifts["repairers"].items():
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


def _shifts(shifts: Mapping[str, Any], classes: Sequence[str]) -> PageTable:
    rows = [
        (*(class_name(classes, label) for label in one["classes"]), f"{one['steps']:+}")
        for one in shifts["pairs"]
    ]
    return PageTable("Shifts", ("class", "against", "steps"), rows)
