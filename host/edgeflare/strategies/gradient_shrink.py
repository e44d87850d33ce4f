"""Shrinking by gradients: to where the first side's boundary is nearest, and a deviation there.

The point of the boundary that is nearest to the seed is found as DeepFool (Moosavi-Dezfooli et al.,
CVPR 2016) and FAB (Croce and Hein, ICML 2020) find it: the boundary is taken as straight at the
present point, and the seed projected onto it, again and again. What both sides answer on the way
and near that point is foretold by the translations, so that queries are made about what should
deviate alone. Where the arms confirm none of it, it shrinks by estimates as `shrink` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from edgeflare.core.goal import Trigger
from edgeflare.core.input_space import Input, Real
from edgeflare.core.query import Arm, GradientQuery, Outcome, TranslatedOutcome, TranslatedQuery
from edgeflare.strategies.refining.decision_boundary import (
    DecisionBoundary,
    find_crossing,
    inputs_between,
    margin_gap,
    margin_gradient,
    project_seed,
    seed_distance,
    step_to,
)
from edgeflare.strategies.refining.gradient_estimate import LinearModel
from edgeflare.strategies.refining.trigger_refinement import (
    EvaluatedInput,
    ProbedInput,
    RefinementOver,
    TriggerRefinement,
)
from edgeflare.strategies.shrink import (
    PROGRESS,
    follow_boundary,
    halve_change,
    keep_nearer,
    reset_blocks,
    reset_cells,
)
from edgeflare.strategies.strategy import QueryGenerator, Start, WhiteboxGenerator
from edgeflare.strategies.surrogate import with_device

T = TypeVar("T")

_ROUNDS: Final = 8
"""Projections at most; most end after four or five, with less than a hundredth gained."""

_WALKED: Final = 10_000
"""Inputs that the translations answer on the way to the boundary at most: never reached."""

_FORETOLD: Final = 24
"""Inputs around a point that the translations answer at once."""

_TURNS: Final = 10
"""How often that many are answered until some deviate."""

_ASKED: Final = 3
"""Foretold deviations about which the arms are asked, the nearest first."""

_RIVALS: Final = 3
"""Classes whose boundary with the seed's is known: those with the largest scores at the point."""


def shrink_by_gradient(
    trigger: Trigger, start: Start, budget: int, enough: Callable[[Input], bool] | None = None
) -> WhiteboxGenerator[Trigger]:
    """Bring a trigger nearer to its seed by gradients; return the nearest one.

    Args:
        trigger: the triggering input.
        start: the trigger's seed, what counts, and the generator.
        budget: the number of inputs that may be evaluated on the arms.
        enough: whether a trigger is near enough for the shrinking to end with it; None where none
            is.

    """
    if enough is not None and enough(trigger.input):
        return trigger
    refinement = TriggerRefinement(trigger, start, budget, enough)
    try:
        if not (yield from _follow_gradient(refinement)):
            yield from halve_change(refinement)
            yield from follow_boundary(refinement)
        yield from reset_blocks(refinement)
        yield from reset_cells(refinement)
    except RefinementOver:
        pass
    return refinement.trigger


def _follow_gradient(refinement: TriggerRefinement) -> WhiteboxGenerator[bool]:
    """Find the point of the boundary that is nearest to the seed, and a deviation there.

    Returns:
        Whether the arms confirmed one.

    """
    seed = refinement.at_seed()
    if not len(seed.first.scores):
        return False
    walk = TriggerRefinement(refinement.trigger, refinement.start, _WALKED)
    boundary = DecisionBoundary.around(seed.first)
    gradient = _KnownGradient(walk.start, boundary.home, len(seed.first.scores))
    points = yield from _first_points(walk, boundary, gradient)
    for at, begin in enumerate(points):
        points[at] = yield from _projected(walk, boundary, gradient, begin)
    points.sort(key=lambda point: seed_distance(walk, point))
    for point in points:
        yield from gradient.ask(point)
        if (yield from _deviate_near(refinement, boundary, gradient, point)):
            return True
    return False


def _foretold(steps: QueryGenerator[T]) -> WhiteboxGenerator[T]:
    """Answer by the translations what would be asked of the arms; the twin's as the device's."""
    try:
        asked = next(steps)
        while True:
            told: Sequence[TranslatedOutcome] = yield TranslatedQuery(
                [query.input for query in asked]
            )
            asked = steps.send(_as_of_arms(told))
    except StopIteration as end:
        result: T = end.value
        return result


def _as_of_arms(told: Sequence[TranslatedOutcome]) -> list[Outcome]:
    """Return what translations answer as outcomes of all arms; the device's is the twin's."""
    return [with_device(one.outcome, one.outcome[Arm.TWIN]) for one in told]


class _KnownGradient:
    """The gradient of the first side's scores at the point where it was asked for last.

    It stands where an estimate from probes stands elsewhere, and costs no query.

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
        self.rivals = tuple(np.argsort(-scores, kind="stable")[: min(_RIVALS, len(scores) - 1)])
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


def _first_points(
    refinement: TriggerRefinement, boundary: DecisionBoundary, gradient: _KnownGradient
) -> WhiteboxGenerator[list[EvaluatedInput]]:
    """Return points on the boundary: on the way to the trigger, and where it seems near the seed.

    The nearest boundary is often that with another class than the trigger is near to.
    """
    space, seed, trigger = refinement.start.space, refinement.at_seed(), refinement.at_trigger()
    within = seed_distance(refinement, trigger)
    yield from gradient.ask(seed)
    to_each = [DecisionBoundary(boundary.home, (rival,)) for rival in gradient.rivals]
    aims = [project_seed(refinement, other, gradient, seed) for other in to_each]
    aims.append(space.levels(trigger.input) - space.levels(seed.input))
    points = []
    for aim in aims:
        if aim is not None:
            point = yield from _foretold(find_crossing(refinement, boundary, gradient, aim, within))
            points += [] if point is None else [point]
    return points or [trigger]


def _projected(
    refinement: TriggerRefinement,
    boundary: DecisionBoundary,
    gradient: _KnownGradient,
    point: EvaluatedInput,
) -> WhiteboxGenerator[EvaluatedInput]:
    """Project the seed onto the boundary, straightened at each point, until it comes no nearer."""
    for _ in range(_ROUNDS):
        yield from gradient.ask(point)
        aim = project_seed(refinement, boundary, gradient, point)
        if aim is None:
            break
        step = step_to(refinement, boundary, gradient, point, aim)
        before, point = point, (yield from _foretold(step))
        if seed_distance(refinement, point) > PROGRESS * seed_distance(refinement, before):
            break
    return point


def _deviate_near(
    refinement: TriggerRefinement,
    boundary: DecisionBoundary,
    gradient: _KnownGradient,
    point: EvaluatedInput,
) -> WhiteboxGenerator[bool]:
    """Keep the nearest deviation around a point, and return whether there is one."""
    start, goal = refinement.start, refinement.start.goal
    slope = margin_gradient(boundary, gradient, point)
    gaps: list[float] = []
    for _ in range(_TURNS):
        inputs = inputs_between(refinement, boundary, slope, point, gaps, _FORETOLD)
        told: Sequence[TranslatedOutcome] = yield TranslatedQuery(inputs)
        outcomes = _as_of_arms(told)
        gaps += [
            margin_gap(boundary, outcome[Arm.ORIGINAL], outcome[Arm.TWIN]) for outcome in outcomes
        ]
        foretold = [
            input_
            for input_, outcome in zip(inputs, outcomes, strict=True)
            if goal.met(outcome) is not None
        ]
        foretold.sort(key=lambda input_: start.space.distance(input_, start.seed))
        for input_ in foretold[:_ASKED]:
            (evaluated,) = yield from refinement.evaluate([input_])
            if evaluated.deviates and (yield from keep_nearer(refinement, evaluated)):
                return True
    return False


@dataclass(frozen=True, slots=True)
class _Values:
    """The values of inputs of a shape as the basis of a linear model."""

    shape: tuple[int, ...]

    def values(self, coefficients: Real) -> Real:
        """Return the input that has the values."""
        return coefficients.reshape(self.shape)
