"""The first side's decision boundary, how to follow it towards the seed, and inputs just beside it.

Inputs between the boundaries of the two sides, which are close to each other, are found by
evaluating other roundings of one input: a dithered input differs by less than a level, and the
scores of 8-bit models still change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import atanh, sqrt

import numpy as np

from edgeflare.core.answer import Answer
from edgeflare.core.input_space import Input, Real
from edgeflare.strategies.refining.gradient_estimate import GradientEstimate, ScoreGradient
from edgeflare.strategies.refining.trigger_refinement import (
    EvaluatedInput,
    ProbedInput,
    TriggerRefinement,
)
from edgeflare.strategies.strategy import QueryGenerator

PROBES = 36
"""Probes of the gradient for each step towards the seed. 24 end a tenth farther away on LeNet-1."""

RIVALS = 3
"""Classes whose boundaries are compared, of those that seem nearest to the seed."""

STEP_SHARES = (1.0, 0.4)
"""Shares of the step to the projection of the seed that are tried. Far from the seed the whole step
is often too long for the linear model."""

MAX_CROSSING_QUERIES = 7
"""Queries at most for finding the boundary along a line."""

NEWTON_STEPS = 30
"""Newton steps at most for the shortest change; ten are usually enough."""

BOUNDARY_TOLERANCE = 0.1
"""Margin below which an input counts as on the boundary. Int8 LeNets resolve 0.17."""


@dataclass(frozen=True, slots=True)
class DecisionBoundary:
    """The decision boundary between one class and others.

    Attributes:
        home: the class.
        rivals: the classes that it may lose to.

    """

    home: int
    rivals: tuple[int, ...]

    @classmethod
    def around(cls, answer: Answer) -> DecisionBoundary:
        """Return the boundary between the class of the largest score and all others."""
        home = int(answer.scores.argmax())
        return cls(home, tuple(k for k in range(len(answer.scores)) if k != home))

    def margin(self, answer: Answer) -> float:
        """Return by how much home's score exceeds that of the best rival."""
        scores = answer.scores
        return float(scores[self.home] - scores[list(self.rivals)].max())

    def contrasts(self, classes: int) -> Real:
        """Return the margin over each rival as a combination of scores: (rivals, classes)."""
        rows = np.zeros((len(self.rivals), classes))
        rows[:, self.home] = 1.0
        rows[np.arange(len(self.rivals)), list(self.rivals)] -= 1.0
        return rows


def step_towards_seed(
    refinement: TriggerRefinement,
    boundary: DecisionBoundary,
    estimate: GradientEstimate,
    point: EvaluatedInput,
    share: float = 1.0,
) -> QueryGenerator[EvaluatedInput]:
    """Step from one point on the boundary to one nearer to the seed, if the estimate shows one.

    Args:
        refinement: the refinement.
        boundary: the boundary.
        estimate: the gradient of the scores; it is updated.
        point: the point on the boundary.
        share: where between the seed (0) and the point (1) the gradient is probed.

    Returns:
        The nearer point; `point` where none was found.

    """
    space = refinement.start.space
    seed = space.levels(refinement.start.seed)
    current = space.levels(point.input) - seed
    base: ProbedInput = point
    if share < 1.0:
        (base,) = yield from refinement.probe([space.nearest(seed + share * current)])
        estimate.learn(point, base)
    probes = estimate.probes(base.input, PROBES, refinement.start.rng)
    for probe in (yield from refinement.probe(probes)):
        estimate.learn(base, probe)
    change = project_seed(refinement, boundary, estimate, base)
    if change is None:
        return point
    return (yield from step_to(refinement, boundary, estimate, point, change))


def step_to(
    refinement: TriggerRefinement,
    boundary: DecisionBoundary,
    estimate: ScoreGradient,
    point: EvaluatedInput,
    aim: Real,
) -> QueryGenerator[EvaluatedInput]:
    """Step from one point on the boundary towards another change of the seed.

    Args:
        refinement: the refinement.
        boundary: the boundary.
        estimate: the gradient of the scores; it is updated.
        point: the point on the boundary.
        aim: the change of the seed that should lie on the boundary, in levels.

    Returns:
        The nearer point; `point` where none was found.

    """
    space, within = refinement.start.space, seed_distance(refinement, point)
    current = space.levels(point.input) - space.levels(refinement.start.seed)
    for share in STEP_SHARES:
        change = share * aim + (1.0 - share) * current
        crossing = yield from find_crossing(refinement, boundary, estimate, change, within)
        if crossing is not None:
            return crossing
    return point


def project_seed(
    refinement: TriggerRefinement,
    boundary: DecisionBoundary,
    estimate: ScoreGradient,
    point: ProbedInput,
) -> Real | None:
    """Return the change that projects the seed onto the linearised boundary; None without any."""
    falls, rises = refinement.start.space.limits(refinement.start.seed)
    model = estimate.linear_model(point.input)
    contrasts = boundary.contrasts(len(point.first.scores))
    at_seed = model.at_seed(contrasts @ point.first.scores, contrasts)
    distances = np.abs(at_seed) / np.maximum(model.steepness(contrasts), 1e-12)
    changes = []
    for rival in np.argsort(distances, kind="stable")[:RIVALS]:
        direction = -np.sign(at_seed[rival]) * model.gradient(contrasts[rival])
        change = _shortest(direction, abs(at_seed[rival]), falls, rises)
        if change is not None:
            changes.append(change)
    return min(changes, key=np.linalg.norm) if changes else None


def find_crossing(
    refinement: TriggerRefinement,
    boundary: DecisionBoundary,
    estimate: ScoreGradient,
    change: Real,
    within: float,
) -> QueryGenerator[EvaluatedInput | None]:
    """Find where a change of the seed crosses the boundary, by bisection of the margin.

    Args:
        refinement: the refinement.
        boundary: the boundary.
        estimate: the gradient of the scores; it is updated.
        change: the direction from the seed, in levels.
        within: the Euclidean distance from the seed, in levels, below which a crossing counts.

    Returns:
        An input just beyond the boundary, or None where it is not crossed within that distance.

    """
    space, length = refinement.start.space, float(np.linalg.norm(change))
    seed = space.levels(refinement.start.seed)
    last = refinement.at_seed()
    home = np.sign(boundary.margin(last.first)) or 1.0
    inside: tuple[float, float] | None = None
    outside: tuple[float, EvaluatedInput] | None = None
    at = min(1.0, 0.95 * within / max(length, 1.0))
    for _ in range(MAX_CROSSING_QUERIES):
        if at * length >= within:
            break
        candidate = space.nearest(seed + at * change)
        (evaluated,) = yield from refinement.evaluate([candidate])
        estimate.learn(last, evaluated)
        last = evaluated
        margin = home * boundary.margin(evaluated.first)
        if margin > 0.0:
            inside = (at, margin)
        else:
            outside = (at, evaluated)
            if margin > -BOUNDARY_TOLERANCE:
                break
        if inside is None:
            at *= 0.8
        elif outside is None:
            at *= 1.25
        else:
            gap = outside[0] - inside[0]
            if gap * length < 2.0:
                break
            share = inside[1] / (inside[1] - home * boundary.margin(outside[1].first))
            at = inside[0] + gap * min(max(share, 0.1), 0.9)
    return outside[1] if outside and seed_distance(refinement, outside[1]) < within else None


def seed_distance(refinement: TriggerRefinement, evaluated: EvaluatedInput) -> float:
    """Return the Euclidean distance of an input from the seed, in levels."""
    return refinement.start.space.distance(evaluated.input, refinement.start.seed)


def _shortest(direction: Real, gain: float, low: Real, high: Real) -> Real | None:
    """Return the shortest change within limits whose product with a direction is `gain`, or None.

    It is a multiple of the direction, clipped to the limits. Its product grows ever more slowly
    with the multiple, so Newton's method never overshoots.
    """
    squared = direction**2
    scale = 0.0
    for _ in range(NEWTON_STEPS):
        change = np.clip(scale * direction, low, high)
        missing = gain - float((change * direction).sum())
        if missing <= 1e-6 * gain:
            return change
        steepness = float(squared[change == scale * direction].sum())
        if steepness == 0.0:
            break
        scale += missing / steepness
    return None


BATCH = 4
"""Inputs that are evaluated together; their answers decide where the next ones are aimed."""

STEP_SHARE = 0.15
"""Length of a sidestep, as a share of the distance from the seed: adds 1 % to it."""

MAX_STEP_RMS = 1.5
"""Root mean square of a sidestep at most, in levels: more is not another rounding."""

CHANGED_CELLS = (0.003, 0.1)
"""The least and the largest share of the cells that a partial sidestep changes."""

PARTIAL_STEP_STD = 0.5
"""Standard deviation of a partial sidestep, in levels: enough for another rounding."""

MARGIN_STD = 0.03
"""Standard deviation of the margins that are aimed at."""


def find_deviations_near(
    refinement: TriggerRefinement,
    boundary: DecisionBoundary,
    estimate: ScoreGradient,
    point: EvaluatedInput,
    tries: int,
) -> QueryGenerator[list[EvaluatedInput]]:
    """Evaluate inputs around a point on the boundary until some deviate.

    The first side's margin is aimed half-way between the boundaries of the two sides, or as far
    beyond as the goal's least strength needs.

    Returns:
        Those of the last batch that deviate; none where the tries were used up.

    """
    gradient = margin_gradient(boundary, estimate, point)
    gaps = [margin_gap(boundary, point.first, point.second)]
    while tries > 0:
        moved = inputs_between(refinement, boundary, gradient, point, gaps, min(BATCH, tries))
        batch = yield from refinement.evaluate(moved)
        tries -= len(batch)
        found = [evaluated for evaluated in batch if evaluated.deviates]
        if found:
            return found
        gaps += [margin_gap(boundary, evaluated.first, evaluated.second) for evaluated in batch]
        point = min(point, *batch, key=lambda evaluated: abs(boundary.margin(evaluated.first)))
    return []


def inputs_between(
    refinement: TriggerRefinement,
    boundary: DecisionBoundary,
    gradient: Real,
    point: EvaluatedInput,
    gaps: Sequence[float],
    count: int,
) -> list[Input]:
    """Return inputs around a point that should lie between the boundaries of the two sides.

    Args:
        refinement: the refinement.
        boundary: the first side's boundary.
        gradient: the gradient of the first side's margin.
        point: the point on the boundary.
        gaps: the second side's margin less the first's, of inputs nearby.
        count: how many inputs.

    """
    rng = refinement.start.rng
    needed = 2.2 * atanh(min(refinement.start.goal.min_strength, 0.9))
    aims = rng.normal(-sum(gaps) / (len(gaps) + 3) / 2, MARGIN_STD, count)
    aims += np.sign(aims) * needed
    return [sidestep(refinement, boundary, gradient, point, float(aim)) for aim in aims]


def sidestep(
    refinement: TriggerRefinement,
    boundary: DecisionBoundary,
    gradient: Real,
    point: EvaluatedInput,
    aim: float,
) -> Input:
    """Return a random input near a point, where the first side's margin should be `aim`."""
    rng, space = refinement.start.rng, refinement.start.space
    size = gradient.size
    longest = min(STEP_SHARE * seed_distance(refinement, point), MAX_STEP_RMS * sqrt(size))
    length = longest * float(np.exp(-2.0 * rng.random()))
    step = rng.normal(0.0, length / sqrt(size), gradient.shape)
    change = _towards_margin(boundary, gradient, point, aim, step)
    return space.dithered(space.levels(point.input) + change, rng)


def partial_sidestep(
    refinement: TriggerRefinement,
    boundary: DecisionBoundary,
    gradient: Real,
    point: EvaluatedInput,
    aim: float,
) -> Input:
    """Return the same with most cells unchanged, so that most roundings are the same too."""
    rng, space = refinement.start.rng, refinement.start.space
    share = float(np.exp(rng.uniform(*np.log(CHANGED_CELLS))))
    mask = rng.random(space.cell_mask(gradient.shape)) < share
    chosen = mask & np.ones(gradient.shape, bool)
    step = np.where(chosen, rng.normal(0.0, PARTIAL_STEP_STD, gradient.shape), 0.0)
    change = _towards_margin(boundary, np.where(chosen, gradient, 0.0), point, aim, step)
    dithered = space.dithered(space.levels(point.input) + change, rng)
    cells = mask.reshape(space.cell_mask(point.input.shape))  # an input may have fewer axes
    return np.where(cells, dithered, point.input)


def _towards_margin(
    boundary: DecisionBoundary, gradient: Real, point: EvaluatedInput, aim: float, step: Real
) -> Real:
    """Return a step plus that multiple of the gradient which brings the margin to `aim`."""
    squared = max(float((gradient**2).sum()), 1e-12)
    along = aim - boundary.margin(point.first) - float((step * gradient).sum())
    return step + along / squared * gradient


def margin_gradient(
    boundary: DecisionBoundary, estimate: ScoreGradient, point: EvaluatedInput
) -> Real:
    """Return the estimated gradient of the first side's margin at a point, shaped as inputs."""
    scores = point.first.scores
    rival = max(boundary.rivals, key=lambda decision: scores[decision])
    contrast = DecisionBoundary(boundary.home, (rival,)).contrasts(len(scores))
    return estimate.linear_model(point.input).gradient(contrast[0])


def margin_gap(boundary: DecisionBoundary, first: Answer, second: Answer) -> float:
    """Return the second side's margin less the first's."""
    return boundary.margin(second) - boundary.margin(first)
