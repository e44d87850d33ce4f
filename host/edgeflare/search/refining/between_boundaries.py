"""The strip between two arms' borders: thin, and met by trying other roundings of one place."""

from __future__ import annotations

from math import atanh, sqrt

import numpy as np

from edgeflare.core.answer import Image
from edgeflare.search.refining.decision_boundary import DecisionBoundary, Real, far
from edgeflare.search.refining.gradient_estimate import GradientEstimate, dithered
from edgeflare.search.refining.trigger_refinement import EvaluatedInput, Part, TriggerRefinement

BATCH = 4
"""Inputs that are looked at together; what they told moves the next ones."""

SHARE = 0.15
"""Length of a sidestep, as a share of the distance from the seed: adds 1 % to it."""

MOST = 1.5
"""Gray levels, root mean square, that a sidestep has at most: more is not another rounding."""

SOME = (0.003, 0.1)
"""Shares of the pixels, the least and the most, that a partial sidestep changes."""

REDRAWN = 0.5
"""Gray levels, the standard deviation of what it changes: enough for another rounding."""

SPREAD = 0.03
"""Of the margins that are aimed at."""


def met_near(
    trial: TriggerRefinement,
    border: DecisionBoundary,
    slope: GradientEstimate,
    here: EvaluatedInput,
    tries: int,
) -> Part[list[EvaluatedInput]]:
    """Look around a place on the border until some inputs deviate.

    The first side is held where the second should be on the other side: half-way between their
    borders, or as far beyond as the goal's least strength asks.

    Returns:
        Those of the last few that deviate; none where the tries were used up.

    """
    rng = trial.start.rng
    gradient = steepest(border, slope, here)
    needed = 2.2 * atanh(min(trial.start.goal.min_strength, 0.9))
    apart = [_apart(border, here)]
    while tries > 0:
        middle = -sum(apart) / (len(apart) + 3) / 2
        aims = rng.normal(middle, SPREAD, min(BATCH, tries))
        aims += np.sign(aims) * needed
        moved = [aside(trial, border, gradient, here, float(aim)) for aim in aims]
        looked = yield from trial.look(moved)
        tries -= len(looked)
        found = [seen for seen in looked if seen.deviates]
        if found:
            return found
        apart += [_apart(border, seen) for seen in looked]
        here = min(here, *looked, key=lambda seen: abs(border.margin(seen.first)))
    return []


def aside(
    trial: TriggerRefinement,
    border: DecisionBoundary,
    gradient: Real,
    here: EvaluatedInput,
    aim: float,
) -> Image:
    """Return an input beside a place, where the margin should be what is aimed at."""
    rng = trial.start.rng
    size = gradient.size
    longest = min(SHARE * far(trial, here), MOST * sqrt(size))
    length = longest * float(np.exp(-2.0 * rng.random()))
    step = rng.normal(0.0, length / sqrt(size), gradient.shape)
    return dithered(here.image + _aimed(border, gradient, here, aim, step), rng)


def partly_aside(
    trial: TriggerRefinement,
    border: DecisionBoundary,
    gradient: Real,
    here: EvaluatedInput,
    aim: float,
) -> Image:
    """Return the same, with most pixels as they are: its roundings too are mostly the same."""
    rng = trial.start.rng
    height, width, _ = gradient.shape
    some = float(np.exp(rng.uniform(*np.log(SOME))))
    chosen = (rng.random((height, width, 1)) < some) & np.ones(gradient.shape, bool)
    step = np.where(chosen, rng.normal(0.0, REDRAWN, gradient.shape), 0.0)
    way = _aimed(border, np.where(chosen, gradient, 0.0), here, aim, step)
    return np.where(chosen, dithered(here.image + way, rng), here.image)


def _aimed(
    border: DecisionBoundary, gradient: Real, here: EvaluatedInput, aim: float, step: Real
) -> Real:
    """Return a step, and how much of the gradient brings the margin to what is aimed at."""
    squared = max(float((gradient**2).sum()), 1e-12)
    along = aim - border.margin(here.first) - float((step * gradient).sum())
    return step + along / squared * gradient


def steepest(border: DecisionBoundary, slope: GradientEstimate, here: EvaluatedInput) -> Real:
    """Return the gradient of the margin at a place."""
    scores = here.first.scores
    rival = max(border.rivals, key=lambda label: scores[label])
    contrast = DecisionBoundary(border.home, (rival,)).contrasts(len(scores))
    return slope.around(here.image).gradient(contrast[0])


def _apart(border: DecisionBoundary, seen: EvaluatedInput) -> float:
    """Return how far the sides' margins are apart: the second's less the first's."""
    return border.margin(seen.second) - border.margin(seen.first)
