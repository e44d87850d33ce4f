"""The tables of a survey that every report has: of slices, of groups and of a baseline."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TypeVar

from edgeflare.pages.answers.answer_form import ARMS, class_name
from edgeflare.survey.estimate.rate import SignedEstimate
from edgeflare.survey.rates.group_differences import DecisionGap
from edgeflare.survey.rates.rate_words import exact, interval, percent, points, together
from edgeflare.survey.rates.slices import ExactShare, SurveySlice
from edgeflare.survey.record.survey_document import SurveyDocument

_Given = TypeVar("_Given")


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


def worst_first(slices: Iterable[SurveySlice]) -> list[SurveySlice]:
    """Return slices in the order of their rates, the highest first.

    Of equal rates the first is the one with the higher limit, then that of which more were seen to
    deviate; slices that are alike in all of that stay in their order.
    """
    return sorted(slices, key=lambda one: (-one.rate.estimate, -one.rate.high, -one.rate.seen))


def slice_table(
    document: SurveyDocument,
    title: str,
    slices: Sequence[SurveySlice],
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
        "deviates": [interval(one.deviation) for one in slices],
        "without ties": [interval(one.rate_strict) for one in slices],
        "by kernels": [interval(one.kernel) for one in slices],
        "by compression": [_share(one.compression) for one in slices],
        "failed": [interval(one.failed) for one in slices],
        **_accuracies(document, slices),
        **_distances(document, slices),
        "items": [f"{one.items:,}" for one in slices],
        "asked": [f"{one.asked:,}" for one in slices],
    }
    if not any(one.failed.seen for one in slices):
        del columns["failed"]
    kept = {name: cells for name, cells in columns.items() if name not in left_out}
    certain = all(exact(one.rate) for one in slices)
    note = "" if certain else _note(document, each)
    return _told(title, [one.name for one in slices], kept, note)


def group_tables(document: SurveyDocument, most: int | None = None) -> list[FigureTable]:
    """Return tables of the differences between groups; none where there are not two.

    Args:
        document: of the survey.
        most: pairs of groups that are shown, those with the largest differences; None for all.

    """
    groups = document.groups
    if groups is None:
        return []
    pairs = sorted(groups.pairs, key=lambda pair: -abs(pair.deviation.estimate))[:most]
    of = (
        f", the largest {len(pairs)} of {len(groups.pairs)}"
        if len(pairs) < len(groups.pairs)
        else ""
    )
    each, any_class = _note(document, groups.confidence), _note(document, None)
    if all(exact(pair.deviation) for pair in pairs):
        of, each, any_class = f"{of}, exact of these inputs alone", "", ""
    rates = {
        "deviation, points": [points(pair.deviation) for pair in pairs],
        "accuracy drop, points": [points(pair.accuracy_drop) for pair in pairs],
    }
    decisions = {
        f"{words}, {arm}": [
            "–" if gaps is None else _gap(document, getattr(gaps, arm)) for gaps in of_pairs
        ]
        for words, of_pairs in (
            ("parity", [pair.parity for pair in pairs]),
            ("equal odds", [pair.odds for pair in pairs]),
        )
        for arm in ARMS
    }
    names = [f"{pair.one} − {pair.other}" for pair in pairs]
    return [
        _told(f"Differences between groups{of}", names, rates, each),
        _told(f"Differences in what is decided{of}", names, decisions, any_class),
    ]


def baseline_table(document: SurveyDocument) -> list[FigureTable]:
    """Return the table of what changed since the baseline; none without one."""
    baseline = document.baseline
    if baseline is None:
        return []
    header = (
        "", "difference, points", "asked in both", "only now", "only before", "p", "p corrected",
    )  # fmt: skip
    rows = [
        (
            "over all" if one.condition is None else one.condition,
            points(one.difference),
            *(f"{count:,}" for count in (one.both, one.only_now, one.only_before)),
            f"{one.p:.2g}",
            f"{one.p_corrected:.2g}",
        )
        for one in (baseline.overall, *baseline.by_condition)
    ]
    return [FigureTable(f"Against {PurePath(baseline.run).name}", header, rows)]


def _note(document: SurveyDocument, each: float | None) -> str:
    confidence = document.confidence
    return f"Confidence of intervals: {together(confidence, confidence if each is None else each)}"


def _told(
    title: str, names: Sequence[str], columns: Mapping[str, Sequence[str]], note: str
) -> FigureTable:
    """Return a table of the columns that say something of a row; without rows if none does."""
    told = {name: cells for name, cells in columns.items() if set(cells) != {"–"}}
    rows = [list(row) for row in zip(names, *told.values(), strict=True)] if told else []
    return FigureTable(title, ("", *told), rows, note)


def _gap(document: SurveyDocument, gap: DecisionGap | None) -> str:
    if gap is None:
        return "–"
    return f"{interval(gap)} of {class_name(document.classes, gap.label)}"


def _accuracies(document: SurveyDocument, slices: Sequence[SurveySlice]) -> dict[str, list[str]]:
    given = [one.accuracy for one in slices]
    return {
        "original right": _cells(given, lambda one: _share(one.original)),
        "twin right": _cells(given, lambda one: _share(one.twin)),
        "device right": _cells(given, lambda one: interval(one.device)),
        "drop, points": _cells(given, lambda one: points(one.drop)),
        "harmed": _cells(given, lambda one: interval(one.harmed)),
        "helped": _cells(given, lambda one: interval(one.helped)),
        **_truth_distances(document, slices),
    }


def truth_columns(document: SurveyDocument) -> list[str]:
    """Return the columns of how far each arm is from the targets; none without targets."""
    noun = document.truth_measure
    return [] if noun is None else [f"{noun}, {arm}" for arm in ARMS]


def _truth_distances(
    document: SurveyDocument, slices: Sequence[SurveySlice]
) -> dict[str, list[str]]:
    given = [None if one.accuracy is None else one.accuracy.distance for one in slices]
    cells = (
        _cells(given, lambda far: _exact_mean(far.original)),
        _cells(given, lambda far: _exact_mean(far.twin)),
        [
            "–" if far is None else _mean(one, far.device)
            for one, far in zip(slices, given, strict=True)
        ],
    )
    return dict(zip(truth_columns(document), cells, strict=False))


def _distances(document: SurveyDocument, slices: Sequence[SurveySlice]) -> dict[str, list[str]]:
    noun = document.distance
    if noun is None:
        return {}
    given = [one.distance for one in slices]
    return {
        f"{noun} to the twin": _cells(given, lambda far: _exact_mean(far.twin)),
        f"{noun} to the device": [
            "–" if far is None else _mean(one, far.device)
            for one, far in zip(slices, given, strict=True)
        ],
    }


def _cells(given: Iterable[_Given | None], said: Callable[[_Given], str]) -> list[str]:
    """Return the cells of a column, with a dash for None."""
    return ["–" if one is None else said(one) for one in given]


def _exact_mean(mean: float | None) -> str:
    return "–" if mean is None else f"{mean:.4g}"


def _mean(one: SurveySlice, found: SignedEstimate | None) -> str:
    """Return an estimated mean of a slice, with its interval where not all were asked."""
    if found is None:
        return "–"
    if one.asked == one.items:
        return f"{found.estimate:.4g}"
    return f"{found.estimate:.4g} ({found.low:.4g} to {found.high:.4g})"


def _share(one: ExactShare | None) -> str:
    return "–" if one is None else percent(one.share)
