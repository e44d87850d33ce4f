"""A score and a threshold: wake words, anomalies, verification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite, prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer, Failure
from edgeflare.core.joint_answer import in_runs, joint_answer, split_decision
from edgeflare.core.task import LEAST_SEEDS, Decoder, ModelOutputs, Task
from edgeflare.core.tensor import RawBatch, Tensor, in_one_order
from edgeflare.errors import UserError
from edgeflare.pages.answers.scores import ThresholdView
from edgeflare.tasks.classification import softmax
from edgeflare.tasks.classification_warnings import classification_warnings
from edgeflare.tasks.frame_pooling import ClipFrames, FrameRule, frames_to_show, require_frame_keys
from edgeflare.tasks.output_choice import (
    chosen_output,
    is_numeric,
    listed,
    named_output,
    one_frame,
    open_outputs,
    output_values,
    tie_width,
)

_SEEDS_FOR_SPREAD = 128
"""Seeds whose scores give the interquartile range."""


@dataclass(frozen=True, slots=True)
class ScoreAnswer(Answer):
    """A score's side of a threshold: decision 1 at or above it, 0 below.

    Attributes:
        score: the score in the units of the output.
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


@dataclass(frozen=True)
class ThresholdDecoder(Decoder):
    """Reads one score, or how far an output is from the input that it reconstructs.

    Attributes:
        threshold: threshold in units of the score.
        spread: the interquartile range of the seeds' scores.
        sides: names of the decisions, below and above.
        frames: the frames of a clip that count.
        source: the position of the input that is reconstructed; None where the output is the score
            itself.

    """

    outputs: tuple[Tensor, ...]
    at: int
    threshold: float
    spread: float
    sides: tuple[str, str]
    frames: ClipFrames
    source: int | None = None

    @property
    def choices(self) -> int:
        """Two sides of the threshold; of frames that are answered each by itself, of all."""
        return prod(self.parts)

    @property
    def meaning(self) -> str:
        """Whether it is the score itself."""
        return "a score" if self.source is None else "a reconstruction"

    @property
    def names(self) -> tuple[str, ...]:
        """The sides, unless frames are answered each by itself."""
        return self.sides if self.frames.answers == 1 else ()

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
        values = output_values(batch, self.outputs, self.at)
        real, failures = self.frames.values(values.real), values.failures
        if self.source is not None:
            given = output_values(batch, self.outputs, self.source)
            difference = real - self.frames.values(given.real)
            real, failures = np.square(difference), {**given.failures, **failures}
        each = real.mean(axis=2)
        if self.frames.rule == "worst":
            return each.max(axis=1, keepdims=True), failures
        return each.mean(axis=1, keepdims=True) if self.frames.rule == "mean" else each, failures

    @property
    def parts(self) -> tuple[int, ...]:
        """Two sides of the threshold, for each frame that is answered by itself."""
        return (2,) * self.frames.answers

    def describe(self, decision: int) -> str:
        """Return the name of a decision; of frames, the names in their order."""
        labels = split_decision(decision, self.parts)
        return in_runs([self.sides[label] for label in labels])

    def views(
        self, answers: Mapping[str, Answer], compared: tuple[str, str]
    ) -> tuple[ThresholdView, ...]:
        """Return the scores and the threshold; of a clip, those of the frames that differ."""
        views = []
        for head, frame in frames_to_show(self.frames, answers, compared):
            scores = {
                arm: None if answer.failure else float(f"{answer.score:.9g}")
                for arm, answer in frame.items()
                if isinstance(answer, ScoreAnswer)
            }
            decisions = {arm: answer.decision for arm, answer in frame.items()}
            views.append(ThresholdView(head, self.sides, self.threshold, scores, decisions))
        return tuple(views)

    def describe_answer(self, answer: Answer, classes: Sequence[str] = ()) -> str:
        """Return the side of an answer, and its score where it is one."""
        side = super().describe_answer(answer, classes)
        if not isinstance(answer, ScoreAnswer) or answer.failure is not None:
            return side
        return f"{side} ({answer.score:.4g})"

    @cached_property
    def _nearly(self) -> float:
        """By how much a score may miss the threshold and still equals it."""
        rule_keeps_grid = self.source is None and self.frames.rule != "mean"
        return tie_width(self.tensor) if rule_keeps_grid else 0.0

    def _answer(self, score: float, failure: Failure | None) -> ScoreAnswer:
        if failure is not None:
            return ScoreAnswer(
                None, False, np.zeros(2), np.zeros(2), failure, score=0.0, excess=0.0
            )
        beyond = score - self.threshold
        tied = abs(beyond) <= self._nearly
        excess = 0.0 if tied else beyond / self.spread
        scores = np.array([-excess, excess]) * (MARGIN / 2)
        return ScoreAnswer(
            int(excess >= 0.0), tied, softmax(scores[None])[0], scores, score=score, excess=excess
        )


MARGIN = 5.0
"""Margin of a score that is one interquartile range from the threshold. The constants of searches
are those of classifiers, whose margins on seeds have an interquartile range of 4 to 6 (the two
models of the example pair, 200 seeds)."""


LEAST_EXCESS_SHIFT = 0.05
"""Interquartile ranges by which scores have to move on the whole for it to be worth a word."""


class Threshold(Task):
    """One score; the decision is on which side of a threshold it is."""

    name = "threshold"
    expects = "one score, (1, 1)"
    decoders = (ThresholdDecoder,)

    def __init__(
        self,
        *,
        threshold: float,
        output: str = "",
        above: str = "above",
        below: str = "below",
        score: Literal["value", "reconstruction"] = "value",
        against: Literal["features", "dequantized"] = "features",
        spread: float = 0.0,
        frames: Literal["last", "any", "mean", "worst"] = "last",
        first_frame: int = 0,
    ) -> None:
        """Make the task.

        Args:
            threshold: threshold in the units of the score; a score that equals it is above, by a
                tie.
            output: the output that holds the score; see `chosen_output`.
            above: what the decision at or above the threshold is called.
            below: what the other one is called.
            score: "value", the output itself; or "reconstruction", the mean squared difference of
                the output and the input of the same size.
            against: what a reconstruction is compared with: "features", the values before they are
                quantized for a model's input, as apps have them; or "dequantized", the input as the
                model reads it.
            spread: what distances from the threshold are divided by; 0 for the interquartile range
                of the model's own scores on the first seeds.
            frames: how the frames of a clip are summed up; see `FrameRule`.
            first_frame: the first frame of a clip that counts, from 0.

        """
        require_frame_keys(self.name, frames, first_frame, ("last", "any", "mean", "worst"))
        if not isfinite(threshold):
            raise UserError(f"threshold is {threshold}; expected a finite number")
        if score not in ("value", "reconstruction"):
            raise UserError(f"score is {score!r}; expected 'value' or 'reconstruction'")
        if against not in ("features", "dequantized"):
            raise UserError(f"against is {against!r}; expected 'features' or 'dequantized'")
        if against == "dequantized" and score != "reconstruction":
            raise UserError(
                "against is 'dequantized', but nothing is reconstructed: say score = "
                "'reconstruction', or remove the key"
            )
        if score == "reconstruction" and threshold <= 0.0:
            raise UserError(
                f"threshold is {threshold:g}, but the score is a squared difference: give a "
                "threshold above 0"
            )
        if not 0.0 <= spread < float("inf"):
            raise UserError(f"spread is {spread}; expected a number above 0, or 0 to measure it")
        if above == below:
            raise UserError(f"above and below are both {above!r}: name the two decisions apart")
        self.reads_inputs = score == "reconstruction"
        self.reads_features = self.reads_inputs and against == "features"
        self.threshold, self._spread = float(threshold), float(spread)
        self._output, self._names = output, (below, above)
        self._rule: FrameRule = frames
        self._first = first_frame

    @classmethod
    def fits(cls, tensor: Tensor) -> bool:
        """Whether an output is a single number."""
        return is_numeric(tensor) and prod(tensor.shape) == 1

    def decoder(self, model: ModelOutputs) -> ThresholdDecoder:
        """Return the decoder of the output that is one score, or that reconstructs an input."""
        frames = ClipFrames.of_model(model.frames, self._rule, self._first, model.name)
        at, source = self._places(model)
        self._require_range(model, at)
        known = self._spread
        if not known and isinstance(model.before, ThresholdDecoder):
            known = model.before.spread
        decoder = ThresholdDecoder(
            model.outputs, at, self.threshold, known or 1.0, self._names, frames, source
        )
        return decoder if known else replace(decoder, spread=self._measured(model, decoder))

    def warnings(
        self,
        original: Sequence[Answer] | None,
        compressed: Sequence[Answer],
        labels: NDArray[np.int64] | None,
    ) -> list[str]:
        """Return the warnings of each model by itself, or else those of classifiers.

        Where labels are given, 1 means above and 0 below, and one line more says that the original
        is hardly ever right.
        """
        lines = super().warnings(original, compressed, labels)
        return lines or classification_warnings(original, compressed, labels)

    def model_warnings(self, name: str, answers: Sequence[Answer]) -> list[str]:
        """Return a line where a model decides the same of at least 8 seeds."""
        decided = {answer.decision for answer in answers if answer.failure is None}
        if len(answers) < LEAST_SEEDS or len(decided) != 1:
            return []
        return [
            f"{name} decides the same of all {len(answers)} seeds, with the threshold "
            f"{self.threshold:g}: check the threshold, and the preprocessing"
        ]

    def _places(self, model: ModelOutputs) -> tuple[int, int | None]:
        """Return the position of the score, or of the reconstruction and of its input."""
        if not self.reads_inputs:
            return chosen_output(type(self), model, self._output), None
        sizes = [prod(tensor.shape) for tensor in model.outputs]
        pairs = [
            (at, source)
            for at in ([named_output(model, self._output)] if self._output else open_outputs(model))
            for source in range(model.inputs)
            if sizes[at] == sizes[source]
        ]
        tensors = [one_frame(tensor, model.frames) for tensor in model.outputs]
        if len(pairs) == 1:
            ((at, source),) = pairs
            if not in_one_order(tensors[at].shape, tensors[source].shape):
                raise UserError(
                    f"{model.name}: output {listed([tensors[at]])} has the values of the input"
                    f" {listed([tensors[source]])} in another order, such as channels first and"
                    " last: convert the model so that both have one shape"
                )
            return at, source
        raise UserError(
            f"{model.name}: score is 'reconstruction', and {len(pairs)} outputs have the size of an"
            f" input: inputs {listed(tensors[: model.inputs])}; outputs "
            f"{listed(tensors[model.inputs :])}; name the output that reconstructs an input, or "
            "remove the key score"
        )

    def _require_range(self, model: ModelOutputs, at: int) -> None:
        """Refuse a threshold that a quantized score can never reach."""
        tensor = model.outputs[at]
        if self.reads_inputs or tensor.range is None:
            return
        least, most = tensor.range
        if not least < self.threshold <= most:
            raise UserError(
                f"{model.name}: threshold is {self.threshold:g}, but output {tensor.name!r} gives "
                f"{least:g} to {most:g}: give a threshold between them"
            )

    def _measured(self, model: ModelOutputs, decoder: ThresholdDecoder) -> float:
        """Return the interquartile range of the model's scores."""
        batch = model.sample(_SEEDS_FOR_SPREAD)
        scores, failures = decoder.scores(batch)
        good = [at for at in range(len(scores)) if at not in failures]
        quartiles = np.percentile(scores[good], (25, 75)) if good else np.zeros(2)
        if not quartiles[1] > quartiles[0]:
            raise UserError(
                f"{model.name}: the middle half of the scores of the first {len(good)} seeds is "
                f"{quartiles[0]:g} throughout, so it gives distances from the threshold no unit: "
                "give the key spread, such as spread = 0.1, or seeds that differ more"
            )
        return float(quartiles[1] - quartiles[0])
