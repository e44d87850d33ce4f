"""Gradient search: Newton steps to the decision boundary, then along it where the arms part.

Both compared models are known, so their gradients are. The mean of the two margins between the
seed's class a and a rival b is led to 0 by Newton steps. From there the search walks along the
boundary, up the difference of the two margins, in the direction in which it is larger: where the
one model prefers a and the other b, the two deviate. Every point is rounded to an input, and judged
by the translations of both models, which computes what the arms would answer; the arms themselves
are asked about what was found.

No paper has this that we know of. DeepXplore (SOSP 2017) climbs a difference of outputs by
gradients too, not bound to the decision boundary; see the strategy `deepxplore`.

Differences from the original
    There is no original.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgeflare.core.goal import Trigger
from edgeflare.core.input_space import Input, Real
from edgeflare.core.query import Arm, GradientQuery, Query, TranslatedOutcome, TranslatedQuery
from edgeflare.strategies.strategy import (
    SearchGenerator,
    Start,
    Strategy,
    WhiteboxGenerator,
    WhiteboxTimeUp,
)
from edgeflare.strategies.strategy_parameters import parameter
from edgeflare.strategies.surrogate import with_device

OPERATOR = "gradient"


@dataclass(frozen=True)
class Gradient(Strategy):
    """Newton steps to the decision boundary, then steps along it up the difference of margins."""

    summary = "follow gradients to the boundary, and along it (extra whitebox)"
    draws_from_pool = False
    needs_choices = True
    needs_gradients = True
    reads_other_seeds = frozenset()

    iterations: int = parameter(
        60, "The most points at which gradients are computed, of each model one.", at_least=1
    )
    strongest: bool = parameter(
        False,
        "Whether to use all iterations and return the strongest deviation, instead of the first.",
    )
    longest_step: float = parameter(
        400.0,
        "The longest step towards the boundary, in levels (L2): where scores are curved, a longer"
        " one leads far beyond it.",
        above=0.0,
    )
    step: float = parameter(
        10.0,
        "The length of a step along the boundary before anything is found, in levels (L2); 20"
        " finds fewer on an int8 LeNet-4, and farther away.",
        above=0.0,
    )
    further_step: float = parameter(
        4.0,
        "How much longer steps along the boundary are once something is found; the longest of those"
        " that are tried is 4 times as long again.",
        above=0.0,
    )
    roundings: int = parameter(
        4,
        "In how many ways the end of each step is rounded to an input; the first is the nearest."
        " An 8-bit model has steps of its own, which gradients do not see.",
        at_least=1,
        at_most=1000,
    )
    patience: int = parameter(
        10,
        "Iterations without progress and without a deviation until the walk begins anew: to the"
        " other side, then with the next best class.",
        at_least=1,
    )

    def search(self, start: Start) -> SearchGenerator:
        """Search by gradients."""
        return _GradientWalk(start, self).run()


@dataclass(frozen=True, slots=True)
class _WalkPoint:
    """A point of the walk.

    Attributes:
        real: where it is, in levels.
        input: the same place, rounded to an input.
        told: what the translations answer about the input.

    """

    real: Real
    input: Input
    told: TranslatedOutcome


class _GradientWalk:
    """A walk from one seed.

    `_side` is 1 where the original shall keep the seed's class and the twin shall not, -1 for the
    opposite, and 0 on the way to the boundary.
    """

    LENGTHS = (1.0, 0.3)
    """Shares of a step that are tried before anything is found."""

    FURTHER_LENGTHS = (4.0, 2.0, 1.0)
    """Multiples of a further step that are tried from then on."""

    MOMENTUM = 0.7
    """Share of the last direction in the next one, once something is found: gradients of 8-bit
    models point to and fro."""

    CLEARANCE = 0.5
    """Score by which classes beside the two should stay below them, so that these two are likely:
    a deviation is no stronger than they are."""

    def __init__(self, start: Start, parameters: Gradient) -> None:
        self._start = start
        self._parameters = parameters
        self._space = start.space
        self._home = start.outcome[Arm.ORIGINAL].decision or 0
        self._origin: Real = start.space.levels(start.seed)
        self._rival: int | None = None
        self._passed_over: set[int] = set()
        self._side = 0
        self._border = self._origin
        self._direction: Real = np.zeros_like(self._origin)
        self._best_value = -np.inf
        self._without_progress = 0
        self._found: dict[bytes, tuple[float, _WalkPoint]] = {}

    def run(self) -> SearchGenerator:
        """Walk until something is found or time is up, and ask the arms about what is found."""
        try:
            trigger = yield from self._walked()
        except WhiteboxTimeUp:
            trigger = None
        return (yield from self._confirmed()) if trigger is None else trigger

    def _walked(self) -> SearchGenerator:
        """Walk, and return the first deviation that the arms confirm; None for the strongest."""
        (point,) = yield from self._evaluated([(self._origin, False)])
        for _ in range(self._parameters.iterations):
            if self._without_progress >= self._parameters.patience and not self._found:
                (point,) = yield from self._evaluated([(self._begun_anew(), False)])
            ends = yield from self._ends_of_steps(point)
            points = yield from self._evaluated(ends)
            point = self._chosen(points)
            if self._found and not self._parameters.strongest:
                trigger = yield from self._confirmed()
                if trigger is not None:
                    return trigger
        return None

    def _ends_of_steps(self, point: _WalkPoint) -> WhiteboxGenerator[list[tuple[Real, bool]]]:
        """Return where the next steps may end, and whether each is to be rounded by chance."""
        rival = self._rival_at(point)
        weights = np.zeros(len(point.told.scores[Arm.TWIN]))
        weights[[self._home, rival]] = 1.0, -1.0
        first: Real = yield GradientQuery(point.input, Arm.ORIGINAL, weights)
        second: Real = yield GradientQuery(point.input, Arm.TWIN, weights)
        margins = [float(point.told.scores[arm] @ weights) for arm in _MODELS]
        slope = (first + second) / 2
        steepness = float(np.square(slope).sum())
        if not steepness:
            return [(point.real, True)]
        newton = -sum(margins) / 2 * slope / steepness
        length = float(np.linalg.norm(newton))
        newton *= min(1.0, self._parameters.longest_step / max(length, _TINY))
        if not self._side:
            if length > _NEAR_STEPS * self._parameters.step:
                return [(point.real + newton, False)]
            self._side = 1 if margins[0] >= margins[1] else -1
            self._border, self._rival = point.real + newton, rival
        apart = self._side * (first - second)
        crowded = yield from self._away_from_others(point, rival)
        if crowded is not None:
            apart = _unit(apart) + _unit(crowded)
        along = _unit(apart - float((apart * slope).sum()) / steepness * slope)
        if self._found:
            along = _unit(along + self.MOMENTUM * self._direction)
        self._direction = along
        step = self._parameters.step * (self._parameters.further_step if self._found else 1.0)
        shares = self.FURTHER_LENGTHS if self._found else self.LENGTHS
        return [
            (point.real + newton + share * step * along, bool(attempt))
            for share in shares
            for attempt in range(self._parameters.roundings)
        ]

    def _away_from_others(self, point: _WalkPoint, rival: int) -> WhiteboxGenerator[Real | None]:
        """Return the direction away from a third class that is nearly as likely; None for none."""
        scores = point.told.scores[Arm.ORIGINAL]
        third = _best_beside(scores, {self._home, rival})
        if third is None or scores[third] <= scores[[self._home, rival]].max() - 2 * self.CLEARANCE:
            return None
        weights = np.zeros(len(scores))
        weights[[self._home, rival, third]] = 0.5, 0.5, -1.0
        answer: Real = yield GradientQuery(point.input, Arm.ORIGINAL, weights)
        return answer

    def _evaluated(self, ends: Sequence[tuple[Real, bool]]) -> WhiteboxGenerator[list[_WalkPoint]]:
        """Evaluate the translations where steps end, and keep what deviates."""
        inputs = []
        for real, by_chance in ends:
            near = (
                self._space.dithered(real, self._start.rng)
                if by_chance
                else self._space.nearest(real)
            )
            inputs.append(self._start.bounds.project(near, self._start.seed))
        told: Sequence[TranslatedOutcome] = yield TranslatedQuery(inputs)
        points = [
            _WalkPoint(
                self._space.levels(input_) if by_chance else self._within(real), input_, answer
            )
            for (real, by_chance), input_, answer in zip(ends, inputs, told, strict=True)
        ]
        for point in points:
            outcome = with_device(point.told.outcome, point.told.outcome[Arm.TWIN])
            if self._start.goal.met(outcome) is not None:
                strength = self._start.goal.strength(outcome) or 0.0
                self._found.setdefault(point.input.tobytes(), (strength, point))
        strongest = sorted(self._found, key=lambda key: -self._found[key][0])
        for key in strongest[_MOST_ASKED:]:  # of which the arms would never be asked
            del self._found[key]
        return points

    def _within(self, real: Real) -> Real:
        """Return a point between the limits of values."""
        low, high = self._space.limits(self._start.seed)
        return np.clip(real, self._origin + low, self._origin + high)

    def _chosen(self, points: Sequence[_WalkPoint]) -> _WalkPoint:
        """Return the point to go on from, and note whether there is progress."""
        if not self._side or self._rival is None:
            return points[0]
        values = [self._value(point, self._rival) for point in points]
        best = int(np.argmax(values))
        progress = values[best] > self._best_value
        self._without_progress = 0 if progress else self._without_progress + 1
        self._best_value = max(self._best_value, values[best])
        return points[best]

    def _value(self, point: _WalkPoint, rival: int) -> float:
        """Return how near a point is to deviating, below 0, or how strongly it does."""
        scores = [point.told.scores[arm] for arm in _MODELS]
        margins = [score[self._home] - score[rival] for score in scores]
        value = min(self._side * margins[0], -self._side * margins[1])
        if value > 0.0:
            shares = [point.told.outcome[arm].probabilities for arm in _MODELS]
            leads = [share[self._home] - share[rival] for share in shares]
            value = 2.0 * min(self._side * leads[0], -self._side * leads[1])
        others = [_best_beside(score, {self._home, rival}) for score in scores]
        crowding = max(
            (
                score[third] - max(score[self._home], score[rival])
                for score, third in zip(scores, others, strict=True)
                if third is not None
            ),
            default=-np.inf,
        )
        return float(value - 0.4 * max(0.0, crowding + self.CLEARANCE))

    def _rival_at(self, point: _WalkPoint) -> int:
        """Return the class whose boundary with the seed's is looked for."""
        if self._rival is not None:
            return self._rival
        mean = (point.told.scores[Arm.ORIGINAL] + point.told.scores[Arm.TWIN]) / 2
        best = _best_beside(mean, {self._home, *self._passed_over})
        if best is None:  # all were passed over: it begins again with the best
            best = _best_beside(mean, {self._home})
        return self._home if best is None else best

    def _begun_anew(self) -> Real:
        """Turn to the other side, or to the next best class; return where to begin."""
        self._without_progress, self._best_value = 0, -np.inf
        self._direction = np.zeros_like(self._origin)
        if self._rival is None or self._rival in self._passed_over:
            self._rival, self._side = None, 0
            return self._origin
        self._passed_over.add(self._rival)
        self._side = -self._side
        return self._border

    def _confirmed(self) -> SearchGenerator:
        """Ask the arms about the strongest few of what was found, until one confirms it."""
        ranked = sorted(self._found.values(), key=lambda entry: -entry[0])
        for _, point in ranked[:_MOST_ASKED]:
            (outcome,) = yield [Query(point.input, self._start.goal.needed)]
            kind = self._start.goal.met(outcome)
            if kind is not None:
                return Trigger(point.input, kind, outcome, (OPERATOR,))
        self._found.clear()
        return None


_MODELS = (Arm.ORIGINAL, Arm.TWIN)

_TINY = 1e-12

_NEAR_STEPS = 6.0
"""Steps from the boundary at which the walk along it begins."""

_MOST_ASKED = 3
"""Inputs that the arms are asked about where they contradict the translations. On the kernels that
are translated they never did."""


def _unit(direction: Real) -> Real:
    """Return a direction of length 1."""
    return direction / max(float(np.linalg.norm(direction)), _TINY)


def _best_beside(scores: Real, classes: set[int]) -> int | None:
    """Return the class with the largest score that is none of some; None where there is none."""
    others = [label for label in range(len(scores)) if label not in classes]
    return max(others, key=lambda label: float(scores[label]), default=None)
