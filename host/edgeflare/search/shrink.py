"""Shrinking: bring a triggering input nearer to its seed, and keep the deviation.

A list of named moves, each of which looks for inputs nearer to the seed that still deviate. What it
finds is kept only if the device says so too and the goal is met, its least strength included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from edgeflare.core.answer import Image
from edgeflare.core.outcome import Outcome
from edgeflare.core.trigger import Trigger
from edgeflare.search.refining.between_boundaries import met_near
from edgeflare.search.refining.decision_boundary import DecisionBoundary, cross, far, nearer
from edgeflare.search.refining.gradient_estimate import GradientEstimate
from edgeflare.search.refining.trigger_refinement import (
    BudgetSpentError,
    EvaluatedInput,
    Part,
    TriggerRefinement,
)
from edgeflare.search.strategy import Start

TRIES = 40
"""Inputs looked at around one place on the border."""

LAST_TRIES = 120
"""The same where the walk along the border ends."""

WORTH = 0.95
"""Share of the trigger's distance that a place must have to be worth those."""

PATIENCE = 6
"""Rounds in a row that may bring hardly anything: enough for all frequencies to be probed."""

SHARES = (1.0, 0.7)
"""Where on the way from the seed the slope is probed, the next one whenever that brought nothing:
far from the seed, the slope on the border tells little about the way there."""

GAIN = 0.99
"""What counts as more than hardly anything: the share that is left of the distance."""

TOGETHER = 8
"""Parts that are set back before the device is asked: an eighth of its queries, and where it
contradicts the host few are lost."""

Index = tuple[Any, ...]
"""What an array is indexed with."""

MOVES: tuple[Callable[[TriggerRefinement], Part[None]], ...]


def shrink(trigger: Trigger, start: Start, budget: int) -> Part[Trigger]:
    """Bring a trigger nearer to its seed with at most so many queries; returns the nearest."""
    trial = TriggerRefinement(trigger, start, budget)
    try:
        for move in MOVES:
            yield from move(trial)
    except BudgetSpentError:
        pass
    return trial.trigger


def along_the_line(trial: TriggerRefinement) -> Part[None]:
    """Halve the change for as long as that deviates."""
    share = 0.5
    while share < 0.99:
        (seen,) = yield from trial.look([_blend(trial, share)])
        if not (seen.deviates and (yield from _keep(trial, seen))):
            share = (1.0 + share) / 2


def along_the_border(trial: TriggerRefinement) -> Part[None]:
    """Walk along the first side's border to where it is nearest, and find the deviation there."""
    seed = trial.at_seed()
    classes = len(seed.first.scores)
    home = int(seed.first.scores.argmax())
    border = DecisionBoundary(home, tuple(label for label in range(classes) if label != home))
    slope = GradientEstimate(trial.start.image, classes)
    here = trial.at_trigger()
    way = here.image.astype(np.float64) - trial.start.image
    here = (yield from cross(trial, border, slope, way, far(trial, here))) or here
    idle = 0
    while idle < PATIENCE:
        share = SHARES[idle % len(SHARES)]
        there = yield from nearer(trial, border, slope, here, share)
        idle = 0 if far(trial, there) < GAIN * far(trial, here) else idle + 1
        moved, here = there is not here, there
        if moved and far(trial, here) < WORTH * _distance(trial):
            yield from _meet(trial, border, slope, here, TRIES)
    if far(trial, here) < GAIN * _distance(trial):
        yield from _meet(trial, border, slope, here, LAST_TRIES)


def by_blocks(trial: TriggerRefinement) -> Part[None]:
    """Set blocks of the image back to the seed, large ones first."""
    side = max(trial.start.image.shape[:2]) // 2
    while side > 1:
        yield from _set_back(trial, _blocks(trial.start.image.shape[:2], side))
        side //= 2


def by_pixels(trial: TriggerRefinement) -> Part[None]:
    """Set single pixels back to the seed, those that changed least first."""
    change = np.abs(trial.trigger.image.astype(np.int16) - trial.start.image).sum(axis=2)
    order = np.argsort(change, axis=None, kind="stable")
    changed = order[change.reshape(-1)[order] > 0]
    yield from _set_back(trial, (np.unravel_index(one, change.shape) for one in changed))


MOVES = (along_the_line, along_the_border, by_blocks, by_pixels)


def _keep(trial: TriggerRefinement, seen: EvaluatedInput) -> Part[bool]:
    def is_nearer(_: Outcome) -> bool:
        return far(trial, seen) < _distance(trial)

    return is_nearer(seen.outcome) and (yield from trial.keep(seen, is_nearer))


def _meet(
    trial: TriggerRefinement,
    border: DecisionBoundary,
    slope: GradientEstimate,
    here: EvaluatedInput,
    tries: int,
) -> Part[None]:
    for seen in (yield from met_near(trial, border, slope, here, tries)):
        yield from _keep(trial, seen)


def _set_back(trial: TriggerRefinement, parts: Iterable[Index]) -> Part[None]:
    """Set one part after another back to the seed, as far as that deviates."""
    here, unconfirmed = trial.at_trigger(), 0
    for part in parts:
        image = here.image.copy()
        image[part] = trial.start.image[part]
        if np.array_equal(image, here.image):
            continue
        if trial.left == 0:
            break
        (seen,) = yield from trial.look([image])
        if seen.deviates:
            here, unconfirmed = seen, unconfirmed + 1
        if unconfirmed == TOGETHER:
            here = here if (yield from _keep(trial, here)) else trial.at_trigger()
            unconfirmed = 0
    if unconfirmed:
        yield from _keep(trial, here)


def _blend(trial: TriggerRefinement, share: float) -> Image:
    seed = trial.start.image.astype(np.float64)
    return np.rint(seed + share * (trial.trigger.image - seed)).astype(np.uint8)


def _blocks(shape: tuple[int, int], side: int) -> Iterator[Index]:
    for row in range(0, shape[0], side):
        for column in range(0, shape[1], side):
            yield slice(row, row + side), slice(column, column + side)


def _distance(trial: TriggerRefinement) -> float:
    return float(np.linalg.norm(trial.trigger.image.astype(np.float64) - trial.start.image))
