"""The rates of all cells as a table: a row for each condition, a column for each severity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgeflare.survey.rates.rate_words import bounds, estimated, exact, interval, together
from edgeflare.survey.shown.survey_words import rate_key


@dataclass(frozen=True, slots=True)
class HeatCell:
    """A cell of the map.

    Attributes:
        rate: as a percentage.
        interval: of it, in percent; "exact" where there is none.
        title: the same in a sentence, with how many were asked.
        shade: from 0 to 100, that of the highest rate.

    """

    rate: str
    interval: str
    title: str
    shade: float


@dataclass(frozen=True, slots=True)
class HeatMap:
    """The map.

    Attributes:
        severities: its columns.
        unchanged: the inputs as they are.
        rows: by condition, a cell for each severity; None where that was not surveyed.
        confidence: with which its intervals hold together, and each.

    """

    severities: Sequence[int]
    unchanged: HeatCell
    rows: Mapping[str, Sequence[HeatCell | None]]
    confidence: str


def heat_map(document: Mapping[str, Any]) -> HeatMap | None:
    """Return the map of a survey; None where only unchanged inputs were surveyed.

    Args:
        document: as `read_survey` returns it.

    """
    unchanged, *cells = document["by_cell"]["slices"]
    if not cells:
        return None
    key = rate_key(document)
    highest = max(one[key]["estimate"] for one in (unchanged, *cells)) or 1.0
    by_place = {(one["condition"], one["severity"]): _cell(one, one[key], highest) for one in cells}
    severities = sorted({severity for _, severity in by_place})
    names = dict.fromkeys(condition for condition, _ in by_place)
    return HeatMap(
        severities,
        _cell(unchanged, unchanged[key], highest),
        {name: [by_place.get((name, severity)) for severity in severities] for name in names},
        together(document["confidence"], document["by_cell"]["confidence"]),
    )


def _cell(one: Mapping[str, Any], rate: Mapping[str, Any], highest: float) -> HeatCell:
    limits = "exact" if exact(rate) else f"interval {bounds(rate)} %"
    said = (
        f"{one['name']}: {estimated(rate)}, {limits};"
        f" {rate['asked']:,} of {rate['items']:,} asked, {rate['seen']:,} of these deviate"
    )
    if (alone := rate["alone"]) is not None:
        said += f"; by their answers alone {interval(alone)}"
    shade = 100.0 * (rate["estimate"] / highest)
    return HeatCell(estimated(rate), "exact" if exact(rate) else bounds(rate), said, shade)
