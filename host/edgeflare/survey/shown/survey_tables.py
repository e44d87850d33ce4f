"""The tables of a survey that every report has: of slices, of groups and of a baseline."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from edgeflare.report.entry_names import class_name
from edgeflare.survey.rates.rate_words import exact, interval, percent, points, together
from edgeflare.survey.shown.survey_words import rate_key

ARMS = ("original", "twin", "device")


@dataclass(frozen=True, slots=True)
class FigureTable:
    """A table of figures as texts.

    Attributes:
        title: what it is of.
        header: of its columns.
        rows: their cells; the first of each names the row.
        note: with what confidence its intervals hold; empty where it has none.

    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


def worst_first(
    document: Mapping[str, Any], slices: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return slices in the order of their rates, the highest first.

    Of equal rates the first is the one with the higher limit, then that of which more were seen to
    deviate; slices that are alike in all of that stay in their order.
    """
    key = rate_key(document)
    parts = ("estimate", "high", "seen")
    return sorted(slices, key=lambda one: tuple(-one[key][part] for part in parts))


def slice_table(
    document: Mapping[str, Any],
    title: str,
    slices: Sequence[Mapping[str, Any]],
    left_out: Collection[str] = (),
    *,
    each: float | None = None,
) -> FigureTable:
    """Return a table of slices; a column that says nothing of any of them is left out.

    Args:
        document: of the survey.
        title: of the table.
        slices: its rows.
        left_out: names of columns for which there is no room.
        each: confidence of an interval in a table whose intervals hold together; None where each
            has that of the survey.

    """
    columns = {
        "deviates": [interval(one["deviation"]) for one in slices],
        "without ties": [interval(one[f"{rate_key(document)}_strict"]) for one in slices],
        "by kernels": [interval(one["kernel"]) for one in slices],
        "by compression": [_share(one["compression"]) for one in slices],
        "failed": [interval(one["failed"]) for one in slices],
        **_accuracies(document, slices),
        **_distances(document, slices),
        "items": [f"{one['items']:,}" for one in slices],
        "asked": [f"{one['asked']:,}" for one in slices],
    }
    if not any(one["failed"]["seen"] for one in slices):
        del columns["failed"]
    kept = {name: cells for name, cells in columns.items() if name not in left_out}
    certain = all(exact(one[rate_key(document)]) for one in slices)
    note = "" if certain else _note(document, each)
    return _told(title, [one["name"] for one in slices], kept, note)


def group_tables(document: Mapping[str, Any], most: int | None = None) -> list[FigureTable]:
    """Return tables of the differences between groups; none where there are not two.

    Args:
        document: of the survey.
        most: pairs of groups that are shown, those with the largest differences; None for all.

    """
    groups = document["groups"]
    if groups is None:
        return []
    pairs = sorted(groups["pairs"], key=lambda pair: -abs(pair["deviation"]["estimate"]))[:most]
    of = (
        f", the largest {len(pairs)} of {len(groups['pairs'])}"
        if len(pairs) < len(groups["pairs"])
        else ""
    )
    each, any_class = _note(document, groups["confidence"]), _note(document, None)
    if all(exact(pair["deviation"]) for pair in pairs):
        of, each, any_class = f"{of}, exact of these inputs alone", "", ""
    rates = {
        "deviation, points": [points(pair["deviation"]) for pair in pairs],
        "accuracy drop, points": [points(pair["accuracy_drop"]) for pair in pairs],
    }
    decisions = {
        f"{words}, {arm}": [_gap(document, (pair[key] or {}).get(arm)) for pair in pairs]
        for key, words in (("parity", "parity"), ("odds", "equal odds"))
        for arm in ARMS
    }
    names = [f"{pair['one']} − {pair['other']}" for pair in pairs]
    return [
        _told(f"Differences between groups{of}", names, rates, each),
        _told(f"Differences in what is decided{of}", names, decisions, any_class),
    ]


def baseline_table(document: Mapping[str, Any]) -> list[FigureTable]:
    """Return the table of what changed since the baseline; none without one."""
    baseline = document["baseline"]
    if baseline is None:
        return []
    header = (
        "", "difference, points", "asked in both", "only now", "only before", "p", "p corrected",
    )  # fmt: skip
    rows = [
        (
            "over all" if one["condition"] is None else one["condition"],
            points(one["difference"]),
            *(f"{one[key]:,}" for key in ("both", "only_now", "only_before")),
            f"{one['p']:.2g}",
            f"{one['p_corrected']:.2g}",
        )
        for one in (baseline["overall"], *baseline["by_condition"])
    ]
    return [FigureTable(f"Against {PurePath(baseline['run']).name}", header, rows)]


def _note(document: Mapping[str, Any], each: float | None) -> str:
    confidence = document["confidence"]
    return f"Confidence of intervals: {together(confidence, confidence if each is None else each)}"


def _told(
    title: str, names: Sequence[str], columns: Mapping[str, Sequence[str]], note: str
) -> FigureTable:
    """Return a table of the columns that say something of a row; without rows if none does."""
    told = {name: cells for name, cells in columns.items() if set(cells) != {"–"}}
    rows = [list(row) for row in zip(names, *told.values(), strict=True)] if told else []
    return FigureTable(title, ("", *told), rows, note)


def _gap(document: Mapping[str, Any], gap: Mapping[str, Any] | None) -> str:
    if gap is None:
        return "–"
    return f"{interval(gap)} of {class_name(document['classes'], gap['label'])}"


def _accuracies(
    document: Mapping[str, Any], slices: Sequence[Mapping[str, Any]]
) -> dict[str, list[str]]:
    given = [one["accuracy"] for one in slices]
    return {
        "original right": [_share(one and one["original"]) for one in given],
        "twin right": [_share(one and one["twin"]) for one in given],
        "device right": [interval(one and one["device"]) for one in given],
        "drop, points": [points(one and one["drop"]) for one in given],
        "harmed": [interval(one and one["harmed"]) for one in given],
        "helped": [interval(one and one["helped"]) for one in given],
        **_truth_distances(document, slices),
    }


def truth_columns(document: Mapping[str, Any]) -> list[str]:
    """Return the columns of how far each arm is from the targets; none without targets."""
    noun = document["truth_measure"]
    return [] if noun is None else [f"{noun}, {arm}" for arm in ARMS]


def _truth_distances(
    document: Mapping[str, Any], slices: Sequence[Mapping[str, Any]]
) -> dict[str, list[str]]:
    given = [(one, (one["accuracy"] or {}).get("distance") or {}) for one in slices]
    cells = (
        [_exact_mean(far.get("original")) for _, far in given],
        [_exact_mean(far.get("twin")) for _, far in given],
        [_mean(one, far.get("device")) for one, far in given],
    )
    return dict(zip(truth_columns(document), cells, strict=False))


def _distances(
    document: Mapping[str, Any], slices: Sequence[Mapping[str, Any]]
) -> dict[str, list[str]]:
    noun = document["distance"]
    if noun is None:
        return {}
    given = [one["distance"] for one in slices]
    return {
        f"{noun} to the twin": [_exact_mean(one and one["twin"]) for one in given],
        f"{noun} to the device": [
            _mean(one, far and far["device"]) for one, far in zip(slices, given, strict=True)
        ],
    }


def _exact_mean(mean: float | None) -> str:
    return "–" if mean is None else f"{mean:.4g}"


def _mean(one: Mapping[str, Any], found: Mapping[str, float] | None) -> str:
    """Return an estimated mean of a slice, with its interval where not all were asked."""
    if found is None:
        return "–"
    if one["asked"] == one["items"]:
        return f"{found['estimate']:.4g}"
    return f"{found['estimate']:.4g} ({found['low']:.4g} to {found['high']:.4g})"


def _share(one: Mapping[str, Any] | None) -> str:
    return "–" if one is None else percent(one["share"])
