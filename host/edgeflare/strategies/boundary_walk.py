"""How boundary bisection chooses its steps along the boundary of the first arm.

A second arm of 8 bits rounds the two best scores. Where the first arm hardly prefers one of the two
decisions, rounding mostly makes the second arm's scores equal, a tie, and tells them apart only
where a rounding threshold lies between them. So what counts is not only the margin, the difference
of the two scores, but also their common level: on an int8 LeNet-1 the second arm is untied on 37 of
100 inputs whose level lies on a threshold, and on 1 of 200 half-way between two. Nobody knows where
the thresholds are. The walk moves the level steadily as long as the second arm ties, and stays
where it did not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from edgeflare.core.answer import Answer
from edgeflare.core.input_space import Input
from edgeflare.strategies.boundary_parameters import BoundaryParameters

_SLOPE_DOUBT: Final = 0.5
"""Standard deviation of the margin's slope along the change, as a share of what bisection saw."""

_SIDEWAYS_DOUBT: Final = 0.1
"""Standard deviation of what one step to the side does to margin and level, before one is taken."""

_NOISE: Final = 0.01
"""Standard deviation of margin and level by the rounding of an input."""

_FORGETTING: Final = 0.8
"""Share of what is known that a step leaves: the slopes are not the same everywhere."""


@dataclass(frozen=True, slots=True)
class BoundaryPoint:
    """An input, and where the surrogate's two answers are relative to their decision boundaries.

    Attributes:
        input: the input.
        outside: whether the first answer is another decision than the seed's.
        margin: the first answer's margin for the seed's decision.
        other_margin: the second answer's margin for it.
        tied: whether the second answer is tied.
        level: the mean of the first answer's two best scores, see `common_level`.

    """

    input: Input
    outside: bool
    margin: float
    other_margin: float
    tied: bool
    level: float


def common_level(answer: Answer) -> float:
    """Return how far the two best scores together lie above the mean of all; 0 without scores.

    Scores behind a softmax lack a constant that all have in common, and the mean of all scores
    varies little: on int8 LeNets this follows the two best logits with a correlation of .95 to .99.
    """
    if len(answer.scores) <= 2:
        return 0.0
    return float(np.sort(answer.scores)[-2:].mean() - answer.scores.mean())


class BoundaryWalk:
    """A walk along one boundary: chooses each step, and learns from where it ended.

    A step is a multiple of the change of the seed plus a multiple of a step to the side. What both
    do to margin and level is estimated by recursive least squares.

    Attributes:
        is_lost: whether the last steps ended off the boundary.

    """

    def __init__(self, point: BoundaryPoint, slope: float, parameters: BoundaryParameters) -> None:
        """Begin.

        Args:
            point: an input on the boundary.
            slope: how fast the margin falls along the change of the seed, below 0.
            parameters: those of the search.

        """
        self.is_lost = False
        self._parameters = parameters
        self._point = point
        self._effects = np.array([[slope, 0.0], [0.0, 0.0]])
        """(change or side, margin or level)."""
        self._doubt = np.diag([(_SLOPE_DOUBT * slope) ** 2, 0.0])
        self._gaps: list[float] = []
        self._steps = parameters.steps_per_direction
        self._course = 0.0
        self._untied_level, self._held = 0.0, 0
        self._pushes = self._lost = 0
        self._taken = np.zeros(2)
        self._hold()

    @property
    def slope(self) -> float:
        """How fast the margin falls along the change of the seed, below 0."""
        return float(self._effects[0, 0])

    @property
    def is_pushing(self) -> bool:
        """Whether the next step pushes the first arm across its boundary.

        That is where the second arm is not tied and on the same side: a finding is just behind.
        """
        parameters, point = self._parameters, self._point
        near = not point.tied and abs(point.margin) < parameters.push_margin
        return near and self._pushes < parameters.max_pushes

    @property
    def needs_direction(self) -> bool:
        """Whether the next step goes to the side, in a direction that is to be drawn."""
        return not self.is_pushing and self._steps >= self._parameters.steps_per_direction

    def turn(self) -> None:
        """Go on in another direction to the side, of which nothing is known."""
        self._effects[1] = 0.0
        self._doubt[1] = self._doubt[:, 1] = 0.0
        self._doubt[1, 1] = _SIDEWAYS_DOUBT**2
        self._steps = 0

    def step(self) -> tuple[float, float]:
        """Return the multiples of the change and of the step to the side that are taken next."""
        parameters, point = self._parameters, self._point
        if self.is_pushing:
            self._pushes += 1
            stride = 0.0
            target = -float(np.sign(point.other_margin or point.margin)) * parameters.push_target
        else:
            self._pushes = 0
            stride = self._stride()
            self._steps += 1
            target = -sum(self._gaps) / max(len(self._gaps) + parameters.gap_prior, 1) / 2
        most = parameters.max_correction
        missing = target - point.margin - stride * self._effects[1, 0]
        along = float(np.clip(missing / self._effects[0, 0], -most, most))
        self._taken = np.array([along, stride])
        return along, stride

    def arrive(self, point: BoundaryPoint) -> None:
        """Learn from where the step ended."""
        taken = self._taken
        seen = np.array([point.margin - self._point.margin, point.level - self._point.level])
        along = self._doubt @ taken
        gain = along / (taken @ along + _NOISE**2)
        self._effects += np.outer(gain, seen - taken @ self._effects)
        self._effects[0, 0] = min(self._effects[0, 0], -1e-3)
        self._doubt = (self._doubt - np.outer(gain, along)) / _FORGETTING
        self._gaps.append(point.other_margin - point.margin)
        self._point = point
        self._lost = self._lost + 1 if abs(point.margin) > self._parameters.lost_margin else 0
        self.is_lost = self._lost == self._parameters.max_lost_steps
        self._hold()

    def _hold(self) -> None:
        """Note the level where the second arm is not tied, or count down until it is left."""
        parameters, point = self._parameters, self._point
        if abs(point.margin) < parameters.level_margin:
            self._held = max(0, self._held - 1)
            if not point.tied:
                self._untied_level, self._held = point.level, parameters.hold_steps

    def _stride(self) -> float:
        """Return the multiple of the step to the side: 1 at first, then by how it moves the level.

        The margin is kept by the change of the seed, which moves the level as well.
        """
        parameters, effects = self._parameters, self._effects
        rise = effects[1, 1] - effects[1, 0] * effects[0, 1] / effects[0, 0]
        if self._steps == 0 or rise == 0.0:
            return 1.0
        if self._held:
            return float(np.sign((self._untied_level - self._point.level) * rise)) or 1.0
        self._course = self._course or float(np.sign(rise))
        most = parameters.max_stride
        return float(np.clip(self._course * parameters.level_stride / rise, -most, most))
