"""The border between two decisions of the first side, and the way along it towards the seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.search.refining.gradient_estimate import GradientEstimate
from edgeflare.search.refining.trigger_refinement import EvaluatedInput, Part, TriggerRefinement

Real = NDArray[np.float64]

PROBES = 36
"""Probes of the slope for each step towards the seed. 24 end a tenth farther away on LeNet-1."""

RIVALS = 3
"""Classes whose borders are compared, of those that seem nearest to the seed."""

STRIDES = (1.0, 0.4)
"""Shares of the way to the foot of the slope that are tried. Far from the seed the whole is often
too much for what is known of the slope."""

LOOKS = 7
"""Looks at most for finding the border along a line."""

NEWTON_STEPS = 30
"""At most, for the shortest way; ten are usually enough, since each step meets further limits."""

ON_BORDER = 0.1
"""Margin at which an input counts as on the border. Int8 LeNets resolve 0.17."""


@dataclass(frozen=True, slots=True)
class DecisionBoundary:
    """Where the first side stops to decide for one class.

    Attributes:
        home: the class.
        rivals: the classes that it may lose to.

    """

    home: int
    rivals: tuple[int, ...]

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


def nearer(
    trial: TriggerRefinement,
    border: DecisionBoundary,
    slope: GradientEstimate,
    here: EvaluatedInput,
    share: float = 1.0,
) -> Part[EvaluatedInput]:
    """Go from one place on the border to one that is nearer to the seed, if the slope knows one.

    Args:
        trial: the refinement.
        border: the border.
        slope: what is known; learns.
        here: the place on the border.
        share: how far on the way from the seed to there the slope is probed.

    Returns:
        The place; `here` where none was found.

    """
    seed = trial.start.image.astype(np.float64)
    so_far = here.image - seed
    at = here
    if share < 1.0:
        (at,) = yield from trial.look([np.rint(seed + share * so_far).astype(np.uint8)])
        slope.learn(here, at)
    for seen in (yield from trial.look(slope.probes(at.image, PROBES, trial.start.rng))):
        slope.learn(at, seen)
    way = foot(trial, border, slope, at)
    if way is None:
        return here
    for stride in STRIDES:
        there = yield from cross(
            trial, border, slope, stride * way + (1.0 - stride) * so_far, far(trial, here)
        )
        if there is not None:
            return there
    return here


def foot(
    trial: TriggerRefinement,
    border: DecisionBoundary,
    slope: GradientEstimate,
    here: EvaluatedInput,
) -> Real | None:
    """Return the shortest change of the seed that reaches the border, as the slope has it."""
    seed = trial.start.image.astype(np.float64)
    plane = slope.around(here.image)
    contrasts = border.contrasts(len(here.first.scores))
    at_seed = plane.at_seed(contrasts @ here.first.scores, contrasts)
    distances = np.abs(at_seed) / np.maximum(plane.steepness(contrasts), 1e-12)
    ways = []
    for rival in np.argsort(distances, kind="stable")[:RIVALS]:
        direction = -np.sign(at_seed[rival]) * plane.gradient(contrasts[rival])
        way = _shortest(direction, abs(at_seed[rival]), -seed, 255.0 - seed)
        if way is not None:
            ways.append(way)
    return min(ways, key=np.linalg.norm) if ways else None


def cross(
    trial: TriggerRefinement,
    border: DecisionBoundary,
    slope: GradientEstimate,
    way: Real,
    within: float,
) -> Part[EvaluatedInput | None]:
    """Find the border along a way from the seed, by its margin.

    Returns:
        An input just beyond the border, or None where the way does not cross it within so many
        gray levels.

    """
    seed, length = trial.start.image, float(np.linalg.norm(way))
    last = trial.at_seed()
    home = np.sign(border.margin(last.first)) or 1.0
    inside: tuple[float, float] | None = None
    outside: tuple[float, EvaluatedInput] | None = None
    at = min(1.0, 0.95 * within / max(length, 1.0))
    for _ in range(LOOKS):
        if at * length >= within:
            break
        image = np.clip(np.rint(seed + at * way), 0, 255).astype(np.uint8)
        (seen,) = yield from trial.look([image])
        slope.learn(last, seen)
        last = seen
        margin = home * border.margin(seen.first)
        if margin > 0.0:
            inside = (at, margin)
        else:
            outside = (at, seen)
            if margin > -ON_BORDER:
                break
        if inside is None:
            at *= 0.8
        elif outside is None:
            at *= 1.25
        else:
            gap = outside[0] - inside[0]
            if gap * length < 2.0:
                break
            share = inside[1] / (inside[1] - home * border.margin(outside[1].first))
            at = inside[0] + gap * min(max(share, 0.1), 0.9)
    return outside[1] if outside and far(trial, outside[1]) < within else None


def far(trial: TriggerRefinement, seen: EvaluatedInput) -> float:
    """Return how far an input is from the seed: Euclidean, in gray levels."""
    return float(np.linalg.norm(seen.image.astype(np.float64) - trial.start.image))


def _shortest(direction: Real, gain: float, low: Real, high: Real) -> Real | None:
    """Return the shortest change within limits that gains so much along a direction, or None.

    It goes along the direction until values meet their limits. What it gains by going farther grows
    ever more slowly, so Newton's method never goes too far.
    """
    squared = direction**2
    far = 0.0
    for _ in range(NEWTON_STEPS):
        way = np.clip(far * direction, low, high)
        missing = gain - float((way * direction).sum())
        if missing <= 1e-6 * gain:
            return way
        steepness = float(squared[way == far * direction].sum())
        if steepness == 0.0:
            break
        far += missing / steepness
    return None
