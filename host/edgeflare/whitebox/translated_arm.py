"""An arm of a pair whose model is translated: its answers and gradients, by the arm's inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.encoder import DifferentiableEncoder
from edgeflare.core.input import Input
from edgeflare.core.task import Decoder
from edgeflare.core.tensor import RawBatch

Real = NDArray[np.float64]


class DifferentiableModel(Protocol):
    """A model that knows its gradient, asked about one input at a time."""

    def evaluate(self, row: NDArray[np.generic]) -> tuple[NDArray[np.generic], Real]:
        """Return the raw output for a row, and the scores, (choices,), before a last softmax."""

    def gradient(
        self, row: NDArray[np.generic], weights: Real, neurons: Mapping[int, float]
    ) -> Real:
        """Return the gradient of a weighted sum of scores and neurons, by the real input."""

    def covered(self, row: NDArray[np.generic], threshold: float) -> NDArray[np.bool_]:
        """Return which neurons an input covers, (neurons,); see `covered_neurons`.

        Raises:
            UserError: the model cannot be looked into.

        """


@dataclass(frozen=True)
class TranslatedArm:
    """A differentiable model between the encoder and the decoder of its arm.

    Attributes:
        model: what computes scores and gradients.
        encoder: of the inputs that are searched.
        decoder: of the model's outputs.
        level: how much one level is, in the inputs' own units.

    """

    model: DifferentiableModel
    encoder: DifferentiableEncoder
    decoder: Decoder
    level: float

    def answer(self, one: Input) -> tuple[Answer, Real]:
        """Return the answer to an input, and its scores before a last softmax."""
        output, scores = self.model.evaluate(self._row(one))
        (answer,) = self.decoder.read(RawBatch(output.reshape(1, -1)))
        return answer, scores

    def gradient(self, one: Input, weights: Real, neurons: Mapping[int, float]) -> Real:
        """Return a gradient by the levels of an input, in its shape; see `GradientQuery`."""
        by_row = self.model.gradient(self._row(one), weights, neurons)
        return self.encoder.pulled_back(by_row).reshape(one.shape) * self.level

    def covered(self, one: Input, threshold: float) -> NDArray[np.bool_]:
        """Return which neurons an input covers; see `covered_neurons`."""
        return self.model.covered(self._row(one), threshold)

    def _row(self, one: Input) -> NDArray[np.generic]:
        rows = self.encoder.encode(one[None])
        return rows[:1]
