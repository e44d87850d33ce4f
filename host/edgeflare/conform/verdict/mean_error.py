"""Whether quantized answers are off to one side: what truncation does, and rounding does not."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import Values
from edgeflare.conform.verdict.right_values import RightValues

_ENOUGH = 1000
"""Values whose mean is taken as it is."""

_DEVIATIONS = 4.0
"""Standard errors by which the mean of fewer values has to exceed the limit. One value a step
above and one a step below are counted in: few values that agree by chance prove little. So
truncation is seen in 40 values or more."""

_VAGUE = 0.1
"""Steps of slack from which a value says nothing of rounding."""


@dataclass(frozen=True, slots=True)
class MeanSide:
    """One way in which values may be off to one side.

    Attributes:
        signs: direction that is counted as positive for each chosen value: -1, 0 or 1.
        down: the least mean error, in steps, that is no bias.
        up: the greatest one.

    """

    signs: NDArray[np.float64]
    down: float
    up: float

    def mean(self, errors: NDArray[np.float64]) -> float:
        """Return the mean of errors in steps if that is a bias, else 0."""
        along = errors * self.signs
        if along.size >= _ENOUGH:
            mean, noise = float(np.mean(along)), 0.0
        else:
            count = along.size + 2
            mean = float(np.sum(along)) / count
            deviation = sqrt((float(np.sum(along * along)) + 2) / count - mean * mean)
            noise = _DEVIATIONS * deviation / sqrt(count)
        return mean if mean - noise > self.up or mean + noise < self.down else 0.0


@dataclass(frozen=True, slots=True)
class MeanLimits:
    """What the mean error of one result may be.

    Attributes:
        chosen: indexes of the flattened values that say something of rounding: each exact value
            once, none that is saturated, none that is not known to a tenth of a step.
        nearest: their nearest steps.
        sides: up, away from the raw zero, and away from the zero point: what truncates does so
            in one of these.

    """

    chosen: NDArray[np.intp]
    nearest: NDArray[np.float64]
    sides: tuple[MeanSide, ...]

    @classmethod
    def of(cls, right: RightValues, judged: NDArray[np.bool_]) -> MeanLimits | None:
        """Return the limits of a quantized result; None where no value says anything.

        Args:
            right: the values that are right.
            judged: those of them that count, (rows, *shape).

        """
        known = np.iinfo(right.value.dtype)
        steps, slack = right.in_steps.ravel(), right.slack_in_steps.ravel()
        clear = judged.ravel() & (steps > known.min) & (steps < known.max) & (slack < _VAGUE)
        places = np.flatnonzero(clear)
        if not places.size:
            return None
        distinct, first = np.unique(steps[places], return_index=True)
        chosen = places[first]
        nearest = np.rint(distinct)
        shift = right.allowance.mean + slack[chosen]
        signs = [np.ones(chosen.size), np.sign(nearest), np.sign(nearest - right.zero_point)]
        wanted = signs if known.min < 0 else (signs[0], signs[2])
        sides = [_side(distinct, one, shift, right.allowance.mean) for one in wanted]
        return cls(chosen, nearest, tuple(sides))

    def mean(self, answer: Values) -> float:
        """Return an answer's mean error in steps to the worst side if that is a bias, else 0."""
        errors = answer.ravel()[self.chosen] - self.nearest
        if not errors.any():
            return 0.0
        return max((side.mean(errors) for side in self.sides), key=abs)


def _side(
    exact: NDArray[np.float64],
    signs: NDArray[np.float64],
    shift: NDArray[np.float64],
    least: float,
) -> MeanSide:
    """Return the limits to one side.

    A kernel may shift its answers by a tenth of a step before it rounds them. Where exact values
    crowd at the middle between two steps, that moves more than a tenth of them.
    """
    nearest = np.rint(exact)
    up = float(np.mean((np.rint(exact + shift * signs) - nearest) * signs))
    down = float(np.mean((np.rint(exact - shift * signs) - nearest) * signs))
    return MeanSide(signs, min(down, -least), max(up, least))
