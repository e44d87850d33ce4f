"""What the arms answered, as a card shows it: a block for each head of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from edgeflare.core.answer_view import (
    AnswerView,
    ClassesView,
    DetectionView,
    RegressionView,
    SegmentationView,
    ThresholdView,
)
from edgeflare.core.input_view import ValuesView
from edgeflare.report.entry_names import ARMS, class_name
from edgeflare.report.html.answered_input import AnsweredInput
from edgeflare.report.html.comparison_plot import ComparisonPlot, comparison_plot, figure
from edgeflare.report.html.mask_group import MaskGroup, mask_group
from edgeflare.report.html.object_table import ObjectTable, object_table
from edgeflare.report.html.text_table import TextTable, text_table

TOP = 5
"""Classes of each arm that are shown."""

LEAST = 0.0005
"""A probability below it reads as 0.0 %."""

MARGIN = 0.1
"""What a line of scores leaves free at both ends, as a share of what it spans."""

PLOT_BYTES = 4_000
"""Characters of the paths of one plot of values, about."""


@dataclass(frozen=True, slots=True)
class CardCell:
    """What an arm gives a class: its probability in percent, and whether that is its decision."""

    percent: float
    top: bool


@dataclass(frozen=True, slots=True)
class CardRow:
    """A class, and what each arm gives it."""

    name: str
    cells: tuple[CardCell, ...]


@dataclass(frozen=True, slots=True)
class ClassTable:
    """The probabilities of classes as a table.

    Attributes:
        head: of the model; empty where it has only one.
        arms: the arms that answered, the columns of `rows`.
        rows: the classes that are among the first five of an arm and not all but impossible, the
            likeliest first.

    """

    kind: ClassVar[str] = "classes"
    head: str
    arms: tuple[str, ...]
    rows: tuple[CardRow, ...]


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The score of an arm: its figure, the side that it is on, and its place on the line.

    The place is in percent from the left; None where the arm failed.
    """

    arm: str
    score: str
    side: str
    place: float | None


@dataclass(frozen=True, slots=True)
class ScoreLine:
    """Scores on a line with their threshold, whose place is in percent from the left."""

    kind: ClassVar[str] = "scores"
    head: str
    threshold: str
    place: float
    rows: tuple[ScoreRow, ...]


@dataclass(frozen=True, slots=True)
class DistanceBlock:
    """The values of the compared arms that differ most, and the distance against the tolerance.

    Attributes:
        head: of the model; empty where it has only one.
        words: what the line and the mark are; or that the distance is not known.
        length: of the distance's bar, in percent of the line.
        tolerance: the place of the tolerance on it, in percent.
        plot: these values of the two arms, or of the one that answered; None where neither did.
        of: how many values there are in all, in words; empty where all are shown.

    """

    kind: ClassVar[str] = "distance"
    head: str
    words: str
    length: float | None
    tolerance: float
    plot: ComparisonPlot | None
    of: str


AnswerBlock: TypeAlias = (
    ClassTable | ScoreLine | DistanceBlock | TextTable | ObjectTable | MaskGroup
)


def answer_blocks(views: Sequence[AnswerView], answered: AnsweredInput) -> tuple[AnswerBlock, ...]:
    """Return a block for each head of which an arm answered something.

    Args:
        views: of the answers.
        answered: the input that they are of.

    """
    blocks = (_block(view, answered) for view in views)
    return tuple(one for one in blocks if not isinstance(one, ClassTable) or one.rows)


def _block(view: AnswerView, answered: AnsweredInput) -> AnswerBlock:
    if isinstance(view, ThresholdView):
        return score_line(view)
    if isinstance(view, RegressionView):
        return distance_block(view)
    if isinstance(view, ClassesView):
        return class_table(view)
    if isinstance(view, DetectionView):
        return object_table(view, answered.what)
    if isinstance(view, SegmentationView):
        return mask_group(view, answered)
    return text_table(view, answered)


def class_table(view: ClassesView) -> ClassTable:
    """Return the classes that matter, and what each arm gives them."""
    arms = tuple(arm for arm in _in_order(view.probabilities) if view.probabilities[arm])
    given = [view.probabilities[arm] for arm in arms]
    shown = {
        label
        for probabilities in given
        for label in sorted(range(len(probabilities)), key=lambda n: -probabilities[n])[:TOP]
        if probabilities[label] >= LEAST
    } | {label for arm in arms if (label := view.decisions.get(arm)) is not None}
    rows = tuple(
        CardRow(
            class_name(view.classes, label),
            tuple(
                CardCell(100 * probabilities[label], view.decisions.get(arm) == label)
                for arm, probabilities in zip(arms, given, strict=True)
            ),
        )
        for label in sorted(shown, key=lambda n: -max(p[n] for p in given))
    )
    return ClassTable(view.head, arms, rows)


def score_line(view: ThresholdView) -> ScoreLine:
    """Return scores and threshold on one line that spans them all."""
    known = [score for score in view.scores.values() if score is not None] + [view.threshold]
    low, high = min(known), max(known)
    spread = (high - low) * (1 + 2 * MARGIN)

    def place(value: float) -> float:
        share = (value - low) / spread + MARGIN / (1 + 2 * MARGIN) if spread else 0.5
        return round(100 * share, 1)

    def row(arm: str, score: float | None) -> ScoreRow:
        if score is None:
            return ScoreRow(arm, "–", "no answer", None)
        side = class_name(view.sides, view.decisions.get(arm))
        return ScoreRow(arm, figure(score), side, place(score))

    rows = tuple(row(arm, view.scores[arm]) for arm in _in_order(view.scores))
    return ScoreLine(view.head, figure(view.threshold), place(view.threshold), rows)


def distance_block(view: RegressionView) -> DistanceBlock:
    """Return the distance of the compared arms against the tolerance, and their values."""
    known = {arm: one for arm in view.compared if (one := view.values.get(arm)) is not None}
    views = [ValuesView(np.array(one), view.names) for one in known.values()]
    plot = comparison_plot(tuple(known), views, PLOT_BYTES) if views else None
    shown = len(view.names)
    of = "" if shown == view.size else f"The {shown} of {view.size:,} values that differ most."
    if view.distance is None:
        words = f"the {view.measure} is not known"
        return DistanceBlock(view.head, words, None, 0.0, plot, of)
    longest = max(view.distance, view.tolerance) or 1.0
    words = (
        f"{view.measure} {figure(view.distance)}, {figure(view.distance / view.tolerance)} times "
        f"the tolerance {figure(view.tolerance)}, which is the mark"
    )
    return DistanceBlock(
        view.head,
        words,
        round(100 * view.distance / longest, 1),
        round(100 * view.tolerance / longest, 1),
        plot,
        of,
    )


def _in_order(by_arm: Mapping[str, object]) -> list[str]:
    return [arm for arm in ARMS if arm in by_arm]
