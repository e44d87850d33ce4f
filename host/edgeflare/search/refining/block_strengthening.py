"""Strengthening by scaling blocks of the change: for answers that have no scores."""

from __future__ import annotations

from edgeflare.core.goal import Trigger
from edgeflare.core.input_space import Input
from edgeflare.core.query import Outcome
from edgeflare.search.block_changes import grown, random_block, with_block
from edgeflare.search.refining.trigger_refinement import (
    BudgetSpentError,
    EvaluatedInput,
    TriggerRefinement,
)
from edgeflare.search.strategy import QueryGenerator

BATCH = 4
"""Inputs that are evaluated at once, of which the strongest is kept."""

NOISE = 16.0
"""Levels, root mean square, of the noise that a block gets where its change is not scaled."""


def strengthen_blocks(refinement: TriggerRefinement, enough: float) -> QueryGenerator[Trigger]:
    """Change one random block after the other, until the trigger is strong enough.

    Returns:
        The strongest trigger, when the budget is spent or the strength is reached.

    """

    def is_stronger(outcome: Outcome) -> bool:
        return strength(refinement, outcome) > strength(refinement, refinement.trigger.outcome)

    try:
        while strength(refinement, refinement.trigger.outcome) < enough:
            candidates = [_changed(refinement) for _ in range(BATCH)]
            batch: list[EvaluatedInput] = yield from refinement.evaluate(candidates)
            best = max(batch, key=lambda one: one.first.strength_against(one.second) or 0.0)
            now = strength(refinement, refinement.trigger.outcome)
            if best.deviates and (best.first.strength_against(best.second) or 0.0) > now:
                yield from refinement.keep(best, is_stronger)
    except BudgetSpentError:
        pass
    return refinement.trigger


def strength(refinement: TriggerRefinement, outcome: Outcome) -> float:
    """Return the strength of an outcome, 0 where an arm failed."""
    return refinement.start.goal.strength(outcome) or 0.0


def _changed(refinement: TriggerRefinement) -> Input:
    """Return the trigger with one block of its change scaled, or with noise in one block."""
    start, rng = refinement.start, refinement.start.rng
    one, space = refinement.trigger.input, refinement.start.space
    if rng.random() < 0.5:
        other = grown(space, start.seed, one, rng)
    else:
        levels = space.levels(one)
        other = space.nearest(levels + rng.normal(0.0, NOISE, levels.shape))
    return with_block(one, other, random_block(space.cells(one.shape), rng))
