"""The decoder of a score and a threshold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer, Failure
from edgeflare.core.joint_answer import in_runs, joint_answer, split_decision
from edgeflare.core.task import Decoder
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.pages.answers.scores import ThresholdView
from edgeflare.tasks.classification import softmax
from edgeflare.tasks.clip_frames import ClipFrames, frames_to_show
from edgeflare.tasks.output_values import (
    output_values,
    row_fields,
    row_from_json,
    tensor_from_json,
    tie_width,
)

MARGIN = 5.0
"""Margin of a score that is one interquartile range from the threshold. The constants of searches
are those of classifiers, whose margins on seeds have an interquartile range of 4 to 6 (the two
models of the example pair, 200 seeds)."""


LEAST_EXCESS_SHIFT = 0.05
"""Interquartile ranges by which scores have to move on the whole for it to be worth a word."""


@dataclass(frozen=True, slots=True)
class ScoreAnswer(Answer):
    """A score's side of a threshold: decision 1 at or above it, 0 below.

    Attributes:
        score: in the units of the output.
        excess: score - threshold, over the interquartile range of the seeds' scores.

    """

    score: float = field(kw_only=True)
    excess: float = field(kw_only=True)

    def strength_against(self, other: Answer) -> float | None:
        """Return the smaller distance from the threshold, in interquartile ranges; 0 on one side.

        None where an arm failed.
        """
        if self.decision is None or other.decision is None:
            return None
        assert isinstance(other, ScoreAnswer)  # noqa: S101 - all answers are of one task
        if self.decision == other.decision:
            return 0.0
        return min(abs(self.excess), abs(other.excess))

    def distance(self, other: Answer) -> float:
        """Return the difference of the two scores, in interquartile ranges."""
        assert isinstance(other, ScoreAnswer)  # noqa: S101 - all answers are of one task
        return abs(self.excess - other.excess)

    def support(self, home: Answer) -> NDArray[np.float64]:
        """Return the score's distance above the threshold, in interquartile ranges: (1,)."""
        failed = self.decision is None or home.decision is None
        return np.array([np.nan if failed else self.excess])

    def support_words(self) -> tuple[str, float]:
        """Return the unit of the score, and a twentieth of it."""
        return "score, in interquartile ranges", LEAST_EXCESS_SHIFT

    def equals(self, other: Answer) -> bool:
        """Whether both arms gave the same score."""
        assert isinstance(other, ScoreAnswer)  # noqa: S101 - all answers are of one task
        return self.score == other.score and self.failure == other.failure


class ThresholdDecoder(Decoder):
    """Reads one score, or how far an output is from the input that it reconstructs.

    Attributes:
        spread: the interquartile range of the seeds' scores.

    """

    def __init__(
        self,
        outputs: tuple[Tensor, ...],
        at: int,
        threshold: float,
        spread: float,
        names: tuple[str, ...],
        frames: ClipFrames,
        source: int | None = None,
    ) -> None:
        """Make a decoder.

        Args:
            outputs: all tensors of a row.
            at: the position of the score, or of the reconstruction.
            threshold: in units of the score.
            spread: the interquartile range of the seeds' scores.
            names: of the decisions, below and above.
            frames: the frames of a clip that count.
            source: the position of the input that is reconstructed; None where the output is the
                score itself.

        """
        self.outputs, self.tensor = outputs, outputs[at]
        self.choices = 2**frames.answers
        self.names = names if frames.answers == 1 else ()
        self._sides = names
        self.meaning = "a score" if source is None else "a reconstruction"
        self._at, self._source, self._frames = at, source, frames
        self.spread = spread
        self._threshold = threshold
        rule_keeps_grid = source is None and frames.rule != "mean"
        self._nearly = tie_width(self.tensor) if rule_keeps_grid else 0.0

    def read(self, batch: RawBatch) -> Iterator[Answer]:
        """Yield the side of each row's score."""
        scores, failures = self.scores(batch)
        for at, row in enumerate(scores):
            yield joint_answer([self._answer(score, failures.get(at)) for score in row.tolist()])

    def scores(self, batch: RawBatch) -> tuple[NDArray[np.float64], dict[int, Failure]]:
        """Return the scores of a batch.

        Returns:
            (batch, frames that are answered each by itself) float64, and why a row has none, by its
            position.

        """
        values = output_values(batch, self.outputs, self._at)
        real, failures = self._frames.values(values.real), values.failures
        if self._source is not None:
            given = output_values(batch, self.outputs, self._source)
            difference = real - self._frames.values(given.real)
            real, failures = np.square(difference), {**given.failures, **failures}
        each = real.mean(axis=2)
        if self._frames.rule == "worst":
            return each.max(axis=1, keepdims=True), failures
        return each.mean(axis=1, keepdims=True) if self._frames.rule == "mean" else each, failures

    def with_spread(self, spread: float) -> ThresholdDecoder:
        """Return this decoder with another interquartile range."""
        return ThresholdDecoder(
            self.outputs, self._at, self._threshold, spread, self._sides, self._frames, self._source
        )

    @property
    def parts(self) -> tuple[int, ...]:
        """Two sides of the threshold, for each frame that is answered by itself."""
        return (2,) * self._frames.answers

    def describe(self, decision: int) -> str:
        """Return the name of a decision; of frames, the names in their order."""
        labels = split_decision(decision, self.parts)
        return in_runs([self._sides[label] for label in labels])

    def views(
        self, answers: Mapping[str, Answer], compared: tuple[str, str]
    ) -> tuple[ThresholdView, ...]:
        """Return the scores and the threshold; of a clip, those of the frames that differ."""
        shown = frames_to_show(self._frames, answers, compared)
        return tuple(self._view(head, frame) for head, frame in shown)

    def describe_answer(self, answer: Answer, classes: Sequence[str] = ()) -> str:
        """Return the side of an answer, and its score where it is one."""
        side = super().describe_answer(answer, classes)
        if not isinstance(answer, ScoreAnswer) or answer.failure is not None:
            return side
        return f"{side} ({answer.score:.4g})"

    def to_json(self) -> dict[str, Any]:
        """Return the tensors, the threshold, and how the score is read."""
        return {
            "tensor": asdict(self.tensor),
            "threshold": self._threshold,
            "spread": self.spread,
            "names": list(self._sides),
            "at": self._at,
            "source": self._source,
            **row_fields(self.outputs),
            **self._frames.to_json(),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> ThresholdDecoder:
        """Return the decoder that `to_json` described."""
        return cls(
            row_from_json(fields) or (tensor_from_json(fields["tensor"]),),
            fields["at"],
            fields["threshold"],
            fields["spread"],
            tuple(fields["names"]),
            ClipFrames.from_json(fields),
            fields["source"],
        )

    def _view(self, head: str, answers: Mapping[str, Answer]) -> ThresholdView:
        scores = {
            arm: None if one.failure else float(f"{one.score:.9g}")
            for arm, one in answers.items()
            if isinstance(one, ScoreAnswer)
        }
        decisions = {arm: one.decision for arm, one in answers.items()}
        return ThresholdView(head, self._sides, self._threshold, scores, decisions)

    def _answer(self, score: float, failure: Failure | None) -> ScoreAnswer:
        if failure is not None:
            return ScoreAnswer(
                None, False, np.zeros(2), np.zeros(2), failure, score=0.0, excess=0.0
            )
        beyond = score - self._threshold
        tied = abs(beyond) <= self._nearly
        excess = 0.0 if tied else beyond / self.spread
        scores = np.array([-excess, excess]) * (MARGIN / 2)
        return ScoreAnswer(
            int(excess >= 0.0), tied, softmax(scores[None])[0], scores, score=score, excess=excess
        )
