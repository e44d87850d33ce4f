"""Scores on two sides of a threshold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from edgeflare.pages.answers.answer_form import (
    ARMS,
    AnswerBlock,
    AnsweredInput,
    AnswerForm,
    AnswerWords,
    Cell,
    class_name,
    in_order,
)
from edgeflare.pages.comparison_plot import figure
from edgeflare.record.json_types import Count, TwoNames

MARGIN = 0.1
"""What a line of scores leaves free at both ends, as a share of what it spans."""


class ThresholdView(AnswerForm, frozen=True, tag_field="form", tag="threshold"):
    """A score of each arm, and the threshold on whose sides decisions differ.

    Attributes:
        sides: names of the decisions 0 and 1: below the threshold, and at or above it.
        threshold: the threshold, in the unit of the scores.
        scores: score by arm; null where the arm failed.
        decisions: decision by arm; null where the arm failed.

    """

    task: ClassVar[str] = "threshold"
    spoken: ClassVar[AnswerWords] = AnswerWords(
        strength="the smaller distance of the two scores from the threshold, in interquartile"
        " ranges of the seeds' scores",
        decision="Decision",
    )
    csv_columns: ClassVar[tuple[str, ...]] = ("threshold", *(f"{arm}_score" for arm in ARMS))

    sides: TwoNames
    threshold: float
    scores: Mapping[str, float | None]
    decisions: Mapping[str, Count | None]

    def decision(self, arm: str) -> str:
        """Return the name of an arm's side."""
        return class_name(self.sides, self.decisions.get(arm))

    def score(self, arm: str) -> float | None:
        """Return an arm's score."""
        return self.scores.get(arm)

    def csv_cells(self) -> Mapping[str, Cell]:
        """Return threshold and scores."""
        scores = {f"{arm}_score": score for arm, score in self.scores.items()}
        return {"threshold": self.threshold, **scores}

    def block(self, shown: AnsweredInput) -> ScoreLine:  # noqa: ARG002
        """Return scores and threshold on one line that spans them all."""
        known = [score for score in self.scores.values() if score is not None] + [self.threshold]
        low, high = min(known), max(known)
        spread = (high - low) * (1 + 2 * MARGIN)

        def place(value: float) -> float:
            share = (value - low) / spread + MARGIN / (1 + 2 * MARGIN) if spread else 0.5
            return round(100 * share, 1)

        def row(arm: str, score: float | None) -> ScoreRow:
            if score is None:
                return ScoreRow(arm, "–", "no answer", None)
            return ScoreRow(arm, figure(score), self.decision(arm), place(score))

        rows = tuple(row(arm, self.scores[arm]) for arm in in_order(self.scores))
        return ScoreLine(self.head, figure(self.threshold), place(self.threshold), rows)


class ScoreRow(msgspec.Struct, frozen=True):
    """The score of an arm: its figure, the side that it is on, and its place on the line.

    The place is in percent from the left; None where the arm failed.
    """

    arm: str
    score: str
    side: str
    place: float | None


class ScoreLine(AnswerBlock, msgspec.Struct, frozen=True):
    """Scores on a line with their threshold, whose place is in percent from the left."""

    template: ClassVar[str] = "answers/scores.html.j2"
    head: str
    threshold: str
    place: float
    rows: tuple[ScoreRow, ...]
