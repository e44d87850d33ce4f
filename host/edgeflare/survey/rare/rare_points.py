"""Points of the field: an input under a condition, its severity and draw, and near points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from edgeflare.conditions.condition import SEVERITIES, Condition
from edgeflare.core.input import Input
from edgeflare.core.input_space import InputSpace

_LOWEST, _HIGHEST = float(SEVERITIES[0]), float(SEVERITIES[-1])
_SPAN = _HIGHEST - _LOWEST
_AT_ONCE = 1024
"""Points whose inputs are in memory together."""

_HALVINGS = 7.0
"""A step of the severity is between all of its range and that halved so many times: large steps are
accepted while thresholds are high, and small ones when they are low."""


@dataclass(frozen=True, slots=True)
class RarePoint:
    """A point of the field.

    Attributes:
        input: which of the inputs.
        condition: which of the conditions.
        severity: from 1 to 5.
        draw: seeds the generator of the condition's own draws; 63 bits.

    """

    input: int
    condition: int
    severity: float
    draw: int


@dataclass(frozen=True, slots=True)
class RarePoints:
    """All points, uniformly distributed: each input, condition, severity and draw is as likely.

    A point moves by its severity, draw, condition or input. Inputs are moved to such as have nearly
    the same level unchanged: of them the event is about as far.

    Attributes:
        inputs: (inputs, *shape).
        conditions: of the inputs' domain; at least one.
        space: of the domain, whose limits are held.
        order: (inputs,) the inputs in the order of their levels, unchanged.
        level_of: from inputs, and which of `inputs` each comes from, to their levels.

    """

    inputs: Sequence[Input] | NDArray[np.generic]
    conditions: Sequence[Condition]
    space: InputSpace
    order: NDArray[np.int64]
    level_of: Callable[[Sequence[Input], Sequence[int]], NDArray[np.float64]]

    def draw(self, count: int, rng: np.random.Generator) -> list[RarePoint]:
        """Return independent points."""
        return [
            RarePoint(*row)
            for row in zip(
                rng.integers(len(self.inputs), size=count).tolist(),
                rng.integers(len(self.conditions), size=count).tolist(),
                rng.uniform(_LOWEST, _HIGHEST, count).tolist(),
                rng.integers(2**63, size=count).tolist(),
                strict=True,
            )
        ]

    def proposals(self, points: Sequence[RarePoint], rng: np.random.Generator) -> list[RarePoint]:
        """Return for each point a near one; see `Space`."""
        rank = np.argsort(self.order)
        return [self._near(point, rank, rng) for point in points]

    def levels(self, points: Sequence[RarePoint]) -> NDArray[np.float64]:
        """Return the level of each point: (points,)."""
        parts = [points[at : at + _AT_ONCE] for at in range(0, len(points), _AT_ONCE)]
        levels = [
            self.level_of([self.changed(one) for one in part], [one.input for one in part])
            for part in parts
        ]
        return np.concatenate([np.empty(0), *levels])

    def changed(self, point: RarePoint) -> Input:
        """Return the input of a point, under its condition.

        Raises:
            UserError: the condition returned something of another shape or dtype.

        """
        rng = np.random.default_rng(point.draw)
        condition = self.conditions[point.condition]
        return self.space.clipped(condition(self.inputs[point.input], point.severity, rng))

    def _near(
        self, point: RarePoint, rank: NDArray[np.int64], rng: np.random.Generator
    ) -> RarePoint:
        kind = rng.choice(4, p=(0.35, 0.25, 0.1, 0.3))
        if kind == 0:
            step = _SPAN * 0.5 ** rng.uniform(0.0, _HALVINGS) * rng.standard_normal()
            return replace(point, severity=_reflected(point.severity + step))
        if kind == 1:
            return replace(point, draw=int(rng.integers(2**63)))
        if kind == 2:
            return replace(point, condition=int(rng.integers(len(self.conditions))))
        # From a neighbour to half of all inputs away, each order of magnitude as likely.
        away = int((len(self.inputs) // 2 + 1) ** rng.random())
        place = rank[point.input] + (away if rng.random() < 0.5 else -away)
        return replace(point, input=int(self.order[place % len(self.inputs)]))


def _reflected(severity: float) -> float:
    """Return a severity within its range, reflected at its ends as often as need be."""
    beyond = (severity - _LOWEST) % (2.0 * _SPAN)
    return _LOWEST + min(beyond, 2.0 * _SPAN - beyond)
