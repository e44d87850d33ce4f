"""A score and a threshold: wake words, anomalies, verification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.task import LEAST_SEEDS, ModelOutputs, Task
from edgeflare.core.tensor import Tensor
from edgeflare.errors import UserError
from edgeflare.tasks.classification_warnings import classification_warnings
from edgeflare.tasks.clip_frames import ClipFrames, FrameRule, require_frame_keys
from edgeflare.tasks.output_choice import (
    chosen_output,
    is_numeric,
    listed,
    named_output,
    one_frame,
    open_outputs,
)
from edgeflare.tasks.threshold_decoder import ThresholdDecoder

_SEEDS_FOR_SPREAD = 128
"""Seeds whose scores give the interquartile range."""


class Threshold(Task):
    """One score; the decision is on which side of a threshold it is."""

    name = "threshold"
    expects = "one score, (1, 1)"

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
            threshold: in the units of the score; a score that equals it is above, by a tie.
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

        Raises:
            UserError: a value is out of its range.

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
        self._threshold, self._spread = float(threshold), float(spread)
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
            model.outputs, at, self._threshold, known or 1.0, self._names, frames, source
        )
        return decoder if known else decoder.with_spread(self._measured(model, decoder))

    @classmethod
    def decoder_from_json(cls, fields: Mapping[str, Any]) -> ThresholdDecoder:
        """Return the decoder that `ThresholdDecoder.to_json` described."""
        return ThresholdDecoder.from_json(fields)

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
            f"{self._threshold:g}: check the threshold, and the preprocessing"
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
        if len(pairs) == 1:
            return pairs[0]
        tensors = [one_frame(tensor, model.frames) for tensor in model.outputs]
        raise UserError(
            f"{model.name}: score is 'reconstruction', and {len(pairs)} outputs have the size of an"
            f" input: inputs {listed(tensors[: model.inputs])}; outputs "
            f"{listed(tensors[model.inputs :])}; name the output that reconstructs an input, or "
            "remove the key score"
        )

    def _require_range(self, model: ModelOutputs, at: int) -> None:
        """Refuse a threshold that a quantized score can never reach."""
        tensor = model.outputs[at]
        if self.reads_inputs or not tensor.scale or tensor.dtype.startswith("float"):
            return
        info = np.iinfo(tensor.dtype)
        least, most = ((end - tensor.zero_point) * tensor.scale for end in (info.min, info.max))
        if not least < self._threshold <= most:
            raise UserError(
                f"{model.name}: threshold is {self._threshold:g}, but output {tensor.name!r} gives "
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
