"""Shrinking: bring a triggering input nearer to its seed, and keep the deviation.

It is a list of moves, each of which searches for inputs nearer to the seed that still deviate. What
a move finds is kept only if the device confirms it and the goal is met, with its least strength.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import numpy as np

from edgeflare.core.goal import Trigger
from edgeflare.core.input_space import Input
from edgeflare.core.query import Outcome
from edgeflare.strategies.refining.decision_boundary import (
    DecisionBoundary,
    find_crossing,
    find_deviations_near,
    seed_distance,
    step_to,
    step_towards_seed,
)
from edgeflare.strategies.refining.gradient_estimate import GradientEstimate, ScoreGradient
from edgeflare.strategies.refining.part_scaling import is_long, parts_of, shortest
from edgeflare.strategies.refining.trigger_refinement import (
    EvaluatedInput,
    RefinementOver,
    TriggerRefinement,
)
from edgeflare.strategies.strategy import QueryGenerator, Start

TRIES = 40
"""Inputs evaluated around one point on the boundary."""

LAST_TRIES = 120
"""Inputs evaluated around the last point on the boundary."""

MAX_DISTANCE = 0.95
"""Share of the trigger's distance that a point must be within to be worth those evaluations."""

PATIENCE = 6
"""Rounds in a row without progress: enough for all frequencies to be probed."""

PROBED_SHARES = (1.0, 0.7)
"""Where between the seed (0) and the boundary (1) the gradient is probed, the next one after each
round without progress: far from the seed, the gradient on the boundary differs from that before."""

PROGRESS = 0.99
"""Share of the distance that may be left for a round to count as progress."""

LARGE_BLOCKS = 32
"""Blocks of an input with one long axis, of the least length that is reset first. The median of 24
findings on MLPerf Tiny's keywords was 6.1 dB without them at 600 queries, 7.3 with them, and 9.4
with `scale_parts` behind them; of 40 findings on spoken words 2.6 and, with both, 6.1."""

PARTS = (16, 32, 32, 64)
"""Parts of such an input's change that are scaled in each round."""

PARTS_PER_CONFIRMATION = 8
"""Parts that are reset before the device is queried: an eighth of its queries, and few resets are
lost where it contradicts the host."""

Index = tuple[Any, ...]
"""An index of an array."""

MOVES: tuple[Callable[[TriggerRefinement], QueryGenerator[None]], ...]


def shrink(
    trigger: Trigger, start: Start, budget: int, enough: Callable[[Input], bool] | None = None
) -> QueryGenerator[Trigger]:
    """Bring a trigger nearer to its seed; return the nearest one.

    Args:
        trigger: the triggering input.
        start: the trigger's seed, what counts, and the generator.
        budget: the number of inputs that may be evaluated.
        enough: whether a trigger is near enough for the shrinking to end with it; None where none
            is.

    """
    if enough is not None and enough(trigger.input):
        return trigger
    refinement = TriggerRefinement(trigger, start, budget, enough)
    try:
        for move in MOVES:
            yield from move(refinement)
    except RefinementOver:
        pass
    return refinement.trigger


def halve_change(refinement: TriggerRefinement) -> QueryGenerator[None]:
    """Halve the change for as long as that deviates."""
    space = refinement.start.space
    seed = space.levels(refinement.start.seed)
    share = 0.5
    while share < 0.99:
        change = space.levels(refinement.trigger.input) - seed
        (evaluated,) = yield from refinement.evaluate([space.nearest(seed + share * change)])
        if not (evaluated.deviates and (yield from keep_nearer(refinement, evaluated))):
            share = (1.0 + share) / 2


def follow_boundary(refinement: TriggerRefinement) -> QueryGenerator[None]:
    """Follow the first side's boundary to where it is nearest, and find a deviation there.

    There is none to follow where answers have no scores.
    """
    if not len(refinement.at_seed().first.scores):
        return
    boundary, estimate, point = yield from _first_crossing(refinement)
    idle = 0
    while idle < PATIENCE:
        share = PROBED_SHARES[idle % len(PROBED_SHARES)]
        nearer = yield from step_towards_seed(refinement, boundary, estimate, point, share)
        idle = (
            0
            if seed_distance(refinement, nearer) < PROGRESS * seed_distance(refinement, point)
            else idle + 1
        )
        moved, point = nearer is not point, nearer
        if moved and seed_distance(refinement, point) < MAX_DISTANCE * _distance(refinement):
            yield from _deviate_near(refinement, boundary, estimate, point, TRIES)
    if seed_distance(refinement, point) < PROGRESS * _distance(refinement):
        yield from _deviate_near(refinement, boundary, estimate, point, LAST_TRIES)


def _first_crossing(
    refinement: TriggerRefinement,
) -> QueryGenerator[tuple[DecisionBoundary, GradientEstimate, EvaluatedInput]]:
    """Return the first side's boundary around the seed, and where the trigger's change crosses it.

    Returns:
        The boundary, an estimate of the gradient of the scores, and the point on the boundary, or
        the trigger where its change does not cross it.

    """
    space, seed, point = refinement.start.space, refinement.at_seed(), refinement.at_trigger()
    boundary = DecisionBoundary.around(seed.first)
    estimate = GradientEstimate(seed.input, len(seed.first.scores), space)
    change = space.levels(point.input) - space.levels(seed.input)
    within = seed_distance(refinement, point)
    crossing = yield from find_crossing(refinement, boundary, estimate, change, within)
    return boundary, estimate, crossing or point


def reset_large_blocks(refinement: TriggerRefinement) -> QueryGenerator[None]:
    """Reset large blocks of an input with one long axis to the seed, before all else is tried."""
    if is_long(refinement.start.space, refinement.start.seed.shape):
        yield from _reset_blocks(refinement, least=len(refinement.start.seed) // LARGE_BLOCKS)


def scale_parts(refinement: TriggerRefinement) -> QueryGenerator[None]:
    """Scale the parts of the change of an input with one long axis by what each does to the margin.

    As `follow_boundary`, with the parts of the change itself in place of cosines.
    """
    space, seed = refinement.start.space, refinement.at_seed()
    if not (len(seed.first.scores) and is_long(space, seed.input.shape)):
        return
    boundary, estimate, point = yield from _first_crossing(refinement)
    origin = space.levels(seed.input)
    beyond = -np.sign(boundary.margin(seed.first))
    for count in PARTS:
        change = space.levels(point.input) - origin
        parts = parts_of(change, count)
        halved = [space.nearest(origin + change - part / 2) for part in parts]
        probed = yield from refinement.probe(halved)
        margins = np.array([boundary.margin(probe.first) for probe in probed])
        gains = 2.0 * beyond * (boundary.margin(point.first) - margins)
        aim = shortest(parts[: len(gains)], gains, float(gains.sum()))
        nearer = yield from step_to(refinement, boundary, estimate, point, aim)
        moved, point = nearer is not point, nearer
        if moved and seed_distance(refinement, point) < MAX_DISTANCE * _distance(refinement):
            yield from _deviate_near(refinement, boundary, estimate, point, TRIES)


def reset_blocks(refinement: TriggerRefinement) -> QueryGenerator[None]:
    """Reset blocks of the input to the seed, large ones first."""
    yield from _reset_blocks(refinement, least=2)


def _reset_blocks(refinement: TriggerRefinement, least: int) -> QueryGenerator[None]:
    """Reset blocks, of half the input's cells on each side first, and of `least` cells last."""
    cells = refinement.start.space.cells(refinement.start.seed.shape)
    side = max(cells) // 2
    while side >= least:
        corners = product(*(range(0, size, side) for size in cells))
        blocks = (tuple(slice(at, at + side) for at in corner) for corner in corners)
        yield from _reset(refinement, blocks)
        side //= 2


def reset_cells(refinement: TriggerRefinement) -> QueryGenerator[None]:
    """Reset single cells, such as pixels, to the seed, those that changed least first."""
    space, seed = refinement.start.space, refinement.start.seed
    values = np.abs(space.levels(refinement.trigger.input) - space.levels(seed))
    change = values.reshape(*space.cells(seed.shape), -1).sum(axis=-1)
    order = np.argsort(change, axis=None, kind="stable")
    changed = order[change.reshape(-1)[order] > 0]
    yield from _reset(refinement, (np.unravel_index(place, change.shape) for place in changed))


MOVES = (
    halve_change,
    reset_large_blocks,
    scale_parts,
    follow_boundary,
    reset_blocks,
    reset_cells,
)


def keep_nearer(refinement: TriggerRefinement, evaluated: EvaluatedInput) -> QueryGenerator[bool]:
    """Keep an input that deviates if it is nearer than what is kept; return whether it was."""

    def is_nearer(_: Outcome) -> bool:
        return seed_distance(refinement, evaluated) < _distance(refinement)

    return is_nearer(evaluated.outcome) and (yield from refinement.keep(evaluated, is_nearer))


def _deviate_near(
    refinement: TriggerRefinement,
    boundary: DecisionBoundary,
    estimate: ScoreGradient,
    point: EvaluatedInput,
    tries: int,
) -> QueryGenerator[None]:
    for evaluated in (
        yield from find_deviations_near(refinement, boundary, estimate, point, tries)
    ):
        yield from keep_nearer(refinement, evaluated)


def _reset(refinement: TriggerRefinement, parts: Iterable[Index]) -> QueryGenerator[None]:
    """Reset one part after another to the seed, wherever the input still deviates."""
    point, unconfirmed = refinement.at_trigger(), 0
    seed = refinement.start.seed
    for part in parts:
        if np.array_equal(point.input[part], seed[part]):
            continue
        if refinement.left == 0:
            break
        candidate = point.input.copy()
        candidate[part] = seed[part]
        (evaluated,) = yield from refinement.evaluate([candidate])
        if evaluated.deviates:
            point, unconfirmed = evaluated, unconfirmed + 1
        if unconfirmed == PARTS_PER_CONFIRMATION:
            kept = yield from keep_nearer(refinement, point)
            point = point if kept else refinement.at_trigger()
            unconfirmed = 0
    if unconfirmed:
        yield from keep_nearer(refinement, point)


def _distance(refinement: TriggerRefinement) -> float:
    start = refinement.start
    return start.space.distance(refinement.trigger.input, start.seed)
