"""Real values, and how far float32 arithmetic may be from each.

What a step of a recurrent operator loses, the next one computes with. So each operation bounds its
own roundings and what becomes of those before it. Matrices, biases and coefficients are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from edgeflare.conform.operators.weighted_sums.sum_answer import HALF_STEP, clamped
from edgeflare.conform.specification.activation_tensors import Reals
from edgeflare.conform.specification.exact_answer import EPSILON, sum_slack

_FUNCTION_ULP = 8
"""Units in the last place of 1 by which kernels' rational approximations of the logistic function
and of tanh are off, with a margin: Eigen's are off by less than 4."""

_LEAST_VARIANCE = 1e-8
"""What kernels add to a variance before they divide by its root."""


@dataclass(frozen=True, slots=True)
class BoundedReals:
    """Values of one shape.

    Attributes:
        values: what they are in exact arithmetic.
        bound: how far those of a kernel may be from them, in the same shape.

    """

    values: Reals
    bound: Reals

    @classmethod
    def exactly(cls, values: Reals) -> BoundedReals:
        """Return values that are known."""
        return cls(values, np.zeros_like(values))

    @property
    def most(self) -> Reals:
        """The largest magnitudes that a kernel may have."""
        return np.abs(self.values) + self.bound

    def __add__(self, other: BoundedReals) -> BoundedReals:
        """Return the sum."""
        values = self.values + other.values
        bound = self.bound + other.bound
        return BoundedReals(values, bound + EPSILON * (np.abs(values) + bound))

    def __mul__(self, other: BoundedReals) -> BoundedReals:
        """Return the product."""
        values = self.values * other.values
        bound = np.abs(self.values) * other.bound + other.most * self.bound
        return BoundedReals(values, bound + EPSILON * (np.abs(values) + bound))

    def times(self, matrix: Reals, *, rounds: bool) -> BoundedReals:
        """Return the products with a matrix of (results, values).

        Args:
            matrix: the matrix.
            rounds: whether each row of values is rounded to eight bits first.

        """
        sizes, weights = self.most, np.abs(matrix).T
        bound = self.bound @ weights + sum_slack(len(weights), sizes @ weights)
        if rounds:
            largest = sizes.max(axis=-1, keepdims=True, initial=0.0)
            bound = bound + largest * HALF_STEP * weights.sum(axis=0)
        return BoundedReals(self.values @ matrix.T, bound)

    def activated(self, activation: str) -> BoundedReals:
        """Return what an activation of the schema makes of it, none of which ever falls."""
        if activation == "TANH":
            return self._through(np.tanh, _FUNCTION_ULP * EPSILON)
        return self._through(lambda values: clamped(values, activation), 0.0)

    def logistic(self) -> BoundedReals:
        """Return the logistic function of it."""
        return self._through(lambda x: 0.5 * np.tanh(0.5 * x) + 0.5, _FUNCTION_ULP * EPSILON)

    def clipped(self, limit: float) -> BoundedReals:
        """Return it within a limit to both sides, if there is one: 0 is none."""
        return self.within(-limit, limit) if limit else self

    def complement(self) -> BoundedReals:
        """Return 1 less it."""
        return BoundedReals(1 - self.values, self.bound + EPSILON)

    def within(self, lowest: float, highest: float) -> BoundedReals:
        """Return it, saturated at both ends of a range."""
        return self._through(lambda x: np.clip(x, lowest, highest), 0.0)

    def off_by(self, amount: float) -> BoundedReals:
        """Return it, where kernels may be further off by some amount, as by a step's rounding."""
        return BoundedReals(self.values, self.bound + amount)

    def normalized(self) -> BoundedReals:
        """Return the deviations of each row from its mean, in standard deviations."""
        count = self.values.shape[-1]
        mean = self.values.mean(axis=-1, keepdims=True)
        away = self.values - mean
        off = self.bound.max(axis=-1, keepdims=True, initial=0.0)
        off = off + count * EPSILON * self.most.max(axis=-1, keepdims=True, initial=0.0)
        deviation = np.sqrt((away**2).mean(axis=-1, keepdims=True) + _LEAST_VARIANCE)
        least = np.maximum(deviation - 2 * off, np.sqrt(_LEAST_VARIANCE))
        values = away / deviation
        bound = 2 * off / least + np.abs(away) * (1 / least - 1 / (deviation + 2 * off))
        # A row's deviations are never more than the root of their number.
        return BoundedReals(values, np.minimum(bound, 2 * np.sqrt(count)) + count * EPSILON)

    def _through(self, function: Callable[[Reals], Reals], loss: float) -> BoundedReals:
        """Return a function that never falls, and that kernels compute with a loss."""
        values = function(self.values)
        above = function(self.values + self.bound) - values
        below = values - function(self.values - self.bound)
        return BoundedReals(values, np.maximum(above, below) + loss)
