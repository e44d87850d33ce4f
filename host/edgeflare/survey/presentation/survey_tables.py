"""The tables of a survey: of slices, of groups, of a baseline, and the map of all cells."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from msgspec import structs

from edgeflare.pages.answers.answer_form import ARMS, class_name
from edgeflare.pages.page import Row, Table, TableCell
from edgeflare.survey.presentation.survey_words import gated_conditions
from edgeflare.survey.rates.group_differences import ArmGaps, DecisionGap
from edgeflare.survey.rates.rate_interval import SignedEstimate
from edgeflare.survey.rates.rate_words import (
    bounds,
    estimated,
    exact,
    interval,
    percent,
    points,
    together,
)
from edgeflare.survey.rates.slices import ExactShare, SurveySlice
from edgeflare.survey.record.survey_document import SurveyDocument

WORST = 10
"""Conditions and pairs of groups that are listed where there is little room; conditions that gates
name are listed, too."""

WORST_CLASSES = 5
"""Classes that are listed there."""

CLASSES = 100
"""Classes that a page lists, the worst first; `survey.csv` has all."""

_RIGHT = ("original right", "twin right", "device right", "drop, points", "harmed", "helped")
"""Columns of accuracy."""

_MISSED_LEAST = (
    "without ties", "by compression", "original right", "twin right", "device right", "harmed",
    "helped", "items",
)  # fmt: skip
"""Columns of slices that a narrow terminal leaves out before others."""


def rate_tables(document: SurveyDocument) -> list[Table]:
    """Return the tables of inputs, conditions, severities and devices.

    Args:
        document: as `read_survey` returns it.

    """
    by_condition, by_severity = document.by_condition, document.by_severity
    overall = [document.overall] if by_condition.slices else []
    conditions = slice_table(
        document,
        "By condition",
        worst_first(by_condition.slices),
        each=by_condition.confidence,
        most=WORST,
        kept=gated_conditions(document),
    )
    by_device = document.by_device
    return [
        slice_table(document, "All inputs", [*overall, document.unchanged]),
        conditions,
        slice_table(document, "By severity", by_severity.slices, each=by_severity.confidence),
        slice_table(document, "By device", by_device.slices, each=by_device.confidence),
    ]


def class_table(document: SurveyDocument) -> Table:
    """Return the table of classes, the worst of them where there are very many."""
    slices = document.by_class.slices
    named = [
        replace(part, name=class_name(document.classes, part.label))
        for part in worst_first(slices)[:CLASSES]
    ]
    each = document.by_class.confidence
    table = slice_table(document, "By class", named, each=each, most=WORST_CLASSES)
    return structs.replace(table, count=len(slices))


def worst_first(slices: Iterable[SurveySlice]) -> list[SurveySlice]:
    """Return slices in the order of their rates, the highest first.

    Of equal rates the first is the one with the higher limit, then that of which more were seen to
    deviate; slices that are alike in all of that stay in their order.
    """
    return sorted(slices, key=lambda part: (-part.rate.value, -part.rate.high, -part.rate.seen))


def slice_table(
    document: SurveyDocument,
    title: str,
    slices: Sequence[SurveySlice],
    *,
    each: float | None = None,
    most: int | None = None,
    kept: Collection[str] = (),
) -> Table:
    """Return a table of slices; a column that says nothing of any of them is left out.

    Args:
        document: document of the survey.
        title: title of the table.
        slices: slices, one for each row.
        each: confidence of an interval in a table whose intervals hold together; None where each
            has that of the survey.
        most: rows that are listed where there is little room, with `kept`, as `Table` has them.
        kept: likewise.

    """
    rows = [_cells(document, slice_) for slice_ in slices]
    if not any(slice_.failed.seen for slice_ in slices):
        rows = [{name: cell for name, cell in row.items() if name != "failed"} for row in rows]
    header, listed = _saying([slice_.name for slice_ in slices], rows)
    return Table(
        title=title,
        header=header,
        rows=listed,
        note="" if all(exact(slice_.rate) for slice_ in slices) else _note(document, each),
        most=most,
        order="worst",
        kept=kept,
        missed_least=(
            *_MISSED_LEAST,
            *_truth_columns(document),
            *("asked", "by kernels", "failed"),
            *_distance_columns(document),
            "drop, points",
        ),
    )


def _cells(document: SurveyDocument, slice_: SurveySlice) -> dict[str, str]:
    """Return the cells of a slice by their columns, with a dash for what there is not."""
    cells = {
        "deviates": interval(slice_.deviation),
        "without ties": interval(slice_.rate_strict),
        "by kernels": interval(slice_.kernel),
        "by compression": _share(slice_.compression),
        "failed": interval(slice_.failed),
        **dict.fromkeys((*_RIGHT, *_truth_columns(document), *_distance_columns(document)), "–"),
        "items": f"{slice_.items:,}",
        "asked": f"{slice_.asked:,}",
    }
    if (accuracy := slice_.accuracy) is not None:
        cells |= {
            "original right": _share(accuracy.original),
            "twin right": _share(accuracy.twin),
            "device right": interval(accuracy.device),
            "drop, points": points(accuracy.drop),
            "harmed": interval(accuracy.harmed),
            "helped": interval(accuracy.helped),
        }
        if (far := accuracy.distance) is not None:
            means = [_exact_mean(far.original), _exact_mean(far.twin), _mean(slice_, far.device)]
            cells |= zip(_truth_columns(document), means, strict=False)
    if (distance := slice_.distance) is not None:
        means = [_exact_mean(distance.twin), _mean(slice_, distance.device)]
        cells |= zip(_distance_columns(document), means, strict=False)
    return cells


def _truth_columns(document: SurveyDocument) -> list[str]:
    """Return the columns of how far each arm is from the targets; none without targets."""
    noun = document.truth_measure
    return [] if noun is None else [f"{noun}, {arm}" for arm in ARMS]


def _distance_columns(document: SurveyDocument) -> list[str]:
    """Return the columns of how far twin and device are from the original; none without it."""
    noun = document.distance
    return [] if noun is None else [f"{noun} to the twin", f"{noun} to the device"]


def group_tables(document: SurveyDocument) -> list[Table]:
    """Return tables of groups and of the differences between them, the largest first.

    Args:
        document: as `read_survey` returns it.

    """
    by_group, groups = document.by_group, document.groups
    table = slice_table(document, "By group", by_group.slices, each=by_group.confidence)
    if groups is None:
        return [table]
    pairs = sorted(groups.pairs, key=lambda pair: -abs(pair.deviation.value))
    certain = all(exact(pair.deviation) for pair in pairs)

    def differences(title: str, cells: Sequence[Mapping[str, str]], each: float | None) -> Table:
        header, rows = _saying([f"{pair.first} − {pair.second}" for pair in pairs], cells)
        return Table(
            title=title,
            header=header,
            rows=rows,
            note="Exact of these inputs alone" if certain else _note(document, each),
            most=WORST,
            order="largest",
            missed_least=[f"{words}, {arm}" for arm in ARMS for words in _FAIRNESS],
        )

    rates = [
        {
            "deviation, points": points(pair.deviation),
            "accuracy drop, points": points(pair.accuracy_drop),
        }
        for pair in pairs
    ]
    decisions = [
        {
            f"{words}, {arm}": _gap(document, gaps, arm)
            for words, gaps in zip(_FAIRNESS, (pair.spd, pair.aaod, pair.eod), strict=True)
            for arm in ARMS
        }
        for pair in pairs
    ]
    return [
        table,
        differences("Differences between groups", rates, groups.confidence),
        differences("Differences in what is decided", decisions, None),
    ]


_FAIRNESS = ("SPD", "AAOD", "EOD")
"""Measures of how unlike two groups are decided about; see `GroupDifference`."""


def _gap(document: SurveyDocument, gaps: ArmGaps | None, arm: str) -> str:
    gap: DecisionGap | None = None if gaps is None else getattr(gaps, arm)
    return "–" if gap is None else f"{interval(gap)} of {class_name(document.classes, gap.label)}"


def baseline_tables(document: SurveyDocument) -> list[Table]:
    """Return the table of what changed since the baseline; none without one."""
    baseline = document.baseline
    if baseline is None:
        return []
    header = (
        "", "difference, points", "asked in both", "only now", "only before", "p", "p corrected",
    )  # fmt: skip
    rows = [
        (
            "over all" if items.condition is None else items.condition,
            points(items.difference),
            *(f"{count:,}" for count in (items.both, items.only_now, items.only_before)),
            f"{items.p:.2g}",
            f"{items.p_corrected:.2g}",
        )
        for items in (baseline.overall, *baseline.by_condition)
    ]
    return [
        Table(
            title=f"Against {PurePath(baseline.run).name}",
            header=header,
            rows=rows,
            missed_least=("only before", "only now", "asked in both", "p"),
        )
    ]


def heat_tables(document: SurveyDocument) -> list[Table]:
    """Return the map of conditions and severities, and before it the inputs as they are.

    There is none where only unchanged inputs were surveyed.

    Args:
        document: as `read_survey` returns it.

    """
    unchanged, *cells = document.by_cell.slices
    if not cells:
        return []
    highest = max(part.rate.value for part in (unchanged, *cells)) or 1.0
    by_place = {(cell.condition, cell.severity): _heat(cell, highest) for cell in cells}
    severities = sorted({cell.severity or 0 for cell in cells})
    rows: list[Row] = [
        [name, *(by_place.get((name, severity), "–") for severity in severities)]
        for name in dict.fromkeys(cell.condition or "" for cell in cells)
    ]
    return [
        Table(
            title="Rate of the unchanged inputs",
            header=("", "rate"),
            rows=[["unchanged inputs", _heat(unchanged, highest)]],
        ),
        Table(
            title="Rates by condition and severity",
            header=("condition", *(f"severity {severity}" for severity in severities)),
            rows=rows,
        ),
    ]


def _heat(slice_: SurveySlice, highest: float) -> TableCell:
    """Return a cell of the map, whose colour is the strongest for the highest rate."""
    rate = slice_.rate
    limits = "exact" if exact(rate) else f"interval {bounds(rate)} %"
    said = (
        f"{slice_.name}: {estimated(rate)}, {limits};"
        f" {rate.asked:,} of {rate.items:,} asked, {rate.seen:,} of these deviate"
    )
    if (alone := rate.alone) is not None:
        said += f"; by their answers alone {interval(alone)}"
    return TableCell(
        estimated(rate),
        title=said,
        mark="heat",
        below="exact" if exact(rate) else bounds(rate),
        shade=100.0 * (rate.value / highest),
    )


def _note(document: SurveyDocument, each: float | None) -> str:
    confidence = document.confidence
    return f"Confidence of intervals: {together(confidence, confidence if each is None else each)}"


def _saying(
    names: Sequence[str], cells: Sequence[Mapping[str, str]]
) -> tuple[Sequence[str], Sequence[Row]]:
    """Return header and rows of the columns that say something; no rows where none does.

    Args:
        names: names of the rows.
        cells: cells of each row, by the same columns.

    """
    columns = [name for row in cells[:1] for name in row]
    header = [name for name in columns if any(row[name] != "–" for row in cells)]
    rows = [[name, *(row[key] for key in header)] for name, row in zip(names, cells, strict=True)]
    return ("", *header), rows if header else []


def _exact_mean(mean: float | None) -> str:
    return "–" if mean is None else f"{mean:.4g}"


def _mean(slice_: SurveySlice, found: SignedEstimate | None) -> str:
    """Return an estimated mean of a slice, with its interval where not all were asked."""
    if found is None:
        return "–"
    if slice_.asked == slice_.items:
        return f"{found.value:.4g}"
    return f"{found.value:.4g} ({found.low:.4g} to {found.high:.4g})"


def _share(share: ExactShare | None) -> str:
    return "–" if share is None else percent(share.share)
