"""Inputs between the decision boundaries of the two sides, which are close to each other.

They are found by evaluating other roundings of one input: a dithered input differs by less than a
level, and the scores of 8-bit models still change.
"""

from __future__ import annotations

from math import atanh, sqrt

import numpy as np

from edgeflare.core.input_space import Input, Real
from edgeflare.search.refining.decision_boundary import DecisionBoundary, seed_distance
from edgeflare.search.refining.gradient_estimate import GradientEstimate
from edgeflare.search.refining.trigger_refinement import EvaluatedInput, TriggerRefinement
from edgeflare.search.strategy import QueryGenerator

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
    estimate: GradientEstimate,
    point: EvaluatedInput,
    tries: int,
) -> QueryGenerator[list[EvaluatedInput]]:
    """Evaluate inputs around a point on the boundary until some deviate.

    The first side's margin is aimed half-way between the boundaries of the two sides, or as far
    beyond as the goal's least strength needs.

    Returns:
        Those of the last batch that deviate; none where the tries were used up.

    """
    rng = refinement.start.rng
    gradient = margin_gradient(boundary, estimate, point)
    needed = 2.2 * atanh(min(refinement.start.goal.min_strength, 0.9))
    gaps = [_margin_gap(boundary, point)]
    while tries > 0:
        middle = -sum(gaps) / (len(gaps) + 3) / 2
        aims = rng.normal(middle, MARGIN_STD, min(BATCH, tries))
        aims += np.sign(aims) * needed
        moved = [sidestep(refinement, boundary, gradient, point, float(aim)) for aim in aims]
        batch = yield from refinement.evaluate(moved)
        tries -= len(batch)
        found = [evaluated for evaluated in batch if evaluated.deviates]
        if found:
            return found
        gaps += [_margin_gap(boundary, evaluated) for evaluated in batch]
        point = min(point, *batch, key=lambda evaluated: abs(boundary.margin(evaluated.first)))
    return []


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
    boundary: DecisionBoundary, estimate: GradientEstimate, point: EvaluatedInput
) -> Real:
    """Return the estimated gradient of the first side's margin at a point, shaped as inputs."""
    scores = point.first.scores
    rival = max(boundary.rivals, key=lambda decision: scores[decision])
    contrast = DecisionBoundary(boundary.home, (rival,)).contrasts(len(scores))
    return estimate.linear_model(point.input).gradient(contrast[0])


def _margin_gap(boundary: DecisionBoundary, evaluated: EvaluatedInput) -> float:
    """Return the second side's margin less the first's."""
    return boundary.margin(evaluated.second) - boundary.margin(evaluated.first)
