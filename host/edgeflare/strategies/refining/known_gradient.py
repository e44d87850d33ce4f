"""The gradient of the first side's scores where a translation of the original computes it.

It stands where an estimate from probes stands elsewhere, and costs no query.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from edgeflare.core.input_space import Input, Real
from edgeflare.core.query import Arm, GradientQuery
from edgeflare.strategies.refining.gradient_estimate import LinearModel
from edgeflare.strategies.refining.trigger_refinement import ProbedInput
from edgeflare.strategies.strategy import Start, WhiteboxGenerator

RIVALS: Final = 3
"""Classes whose boundary with the seed's is known: those with the largest scores at the point."""


@dataclass(frozen=True, slots=True)
class _Values:
    """The values of inputs of a shape as the basis of a linear model."""

    shape: tuple[int, ...]

    def values(self, coefficients: Real) -> Real:
        """Return the input that has the values."""
        return coefficients.reshape(self.shape)


class KnownGradient:
    """The gradient of the first side's scores at the point where it was asked for last.

    Attributes:
        rivals: the classes of which it is known beside the seed's, the likeliest first.

    """

    rivals: tuple[int, ...] = ()

    def __init__(self, start: Start, home: int, classes: int) -> None:
        """Begin without a gradient.

        Args:
            start: the seed, and the space of the inputs.
            home: the seed's class.
            classes: the number of scores.

        """
        self._space = start.space
        self._seed = start.space.levels(start.seed)
        self._home = home
        self._slopes: Real = np.zeros((classes, self._seed.size))

    def ask(self, point: ProbedInput) -> WhiteboxGenerator[None]:
        """Ask for the gradient at a point, of the seed's class and of the likeliest others.

        The margin over any other class counts as if it were the same everywhere.
        """
        scores = point.first.scores.copy()
        scores[self._home] = -np.inf
        slopes = np.zeros_like(self._slopes)
        self.rivals = tuple(np.argsort(-scores, kind="stable")[: min(RIVALS, len(scores) - 1)])
        for rival in self.rivals:
            weights = np.zeros(len(scores))
            weights[[self._home, rival]] = 1.0, -1.0
            slope: Real = yield GradientQuery(point.input, Arm.ORIGINAL, weights)
            slopes[rival] = -slope.reshape(-1)
        self._slopes = slopes

    def learn(self, before: ProbedInput, after: ProbedInput) -> None:
        """Learn nothing: the gradient is known."""

    def linear_model(self, candidate: Input) -> LinearModel:
        """Return a linear model of the scores, up to what all have in common."""
        to_seed = (self._seed - self._space.levels(candidate)).reshape(-1)
        return LinearModel(self._slopes, to_seed, _Values(self._seed.shape))
