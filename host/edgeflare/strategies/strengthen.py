"""Strengthening: make a triggering input's two arms disagree more confidently, decisions unchanged.

First the probabilities of all other classes are reduced, which no deviation between the two
decisions can have. Then the strength is increased by evaluating one rounding of the input after the
other, with the first arm's margin aimed slightly above its current one. Where answers have no
scores, blocks of the change are scaled instead.
"""

from __future__ import annotations

from math import inf, log, sqrt

import numpy as np

from edgeflare.core.goal import Trigger
from edgeflare.core.input_space import Input, Real
from edgeflare.core.query import Outcome
from edgeflare.strategies.block_changes import grown, random_block, with_block
from edgeflare.strategies.refining.decision_boundary import (
    BATCH,
    DecisionBoundary,
    margin_gradient,
    partial_sidestep,
    sidestep,
)
from edgeflare.strategies.refining.gradient_estimate import GradientEstimate
from edgeflare.strategies.refining.trigger_refinement import (
    EvaluatedInput,
    RefinementOver,
    TriggerRefinement,
)
from edgeflare.strategies.strategy import QueryGenerator, Start
from edgeflare.strategies.surrogate import compared

_TRIED_BLOCKS = 4
"""Inputs that are evaluated at once, of which the strongest is kept."""


_NOISE = 16.0
"""Levels, root mean square, of the noise that a block gets where its change is not scaled."""


MIN_PROBABILITY = 0.85
"""Probability of the two decisions together above which other classes no longer limit the
strength."""

ROUNDS, PROBES = 4, 24
"""Rounds at most to get there, and probes of the gradient in each: a third of 300 queries."""

STEP_SHARES = (1.0, 0.5, 0.25)
"""Shares of the estimated step that are tried."""

MAX_STEP_RMS = 20.0
"""Root mean square of that step at most, in levels: the linear model does not hold beyond."""

MARGIN_INCREASE = 0.04
"""Mean by which the first side's margin is aimed higher: the second's stays the same as long as its
rounding does, which is a third as likely for each further step."""


def strengthen(
    trigger: Trigger, start: Start, budget: int, enough: float | None = None
) -> QueryGenerator[Trigger]:
    """Make a trigger stronger with at most `budget` queries; return the strongest one.

    Args:
        trigger: the triggering input.
        start: the trigger's seed, what counts, and the generator.
        budget: the number of inputs that may be evaluated.
        enough: the strength at which it ends; None for the greatest, which is 1 for probabilities.

    """
    refinement = TriggerRefinement(trigger, start, budget)
    first, second = compared(start.goal, trigger.outcome)
    if first.decision is None or second.decision is None:
        return trigger
    if not len(first.scores):
        return (yield from _strengthen_blocks(refinement, inf if enough is None else enough))
    enough = 1.0 if enough is None else enough
    boundary = DecisionBoundary(first.decision, (second.decision,))
    estimate = GradientEstimate(start.seed, len(first.scores), start.space)
    found = refinement.at_trigger()
    estimate.learn(refinement.at_seed(), found)
    if _strength(refinement, trigger.outcome) >= enough:
        return trigger
    try:
        point = yield from suppress_other_classes(refinement, boundary, estimate, found)
        point = yield from climb(
            refinement, boundary, estimate, point, refinement.left // 2, enough
        )
        if decision_strength(boundary, point) == 0.0:
            point = found
        yield from climb(refinement, boundary, estimate, point, 0, enough)
    except RefinementOver:
        pass
    return refinement.trigger


def suppress_other_classes(
    refinement: TriggerRefinement,
    boundary: DecisionBoundary,
    estimate: GradientEstimate,
    point: EvaluatedInput,
) -> QueryGenerator[EvaluatedInput]:
    """Follow the boundary to where the two decisions have nearly all of the probability."""
    space = refinement.start.space
    for _ in range(ROUNDS):
        if decision_probability(boundary, point) >= MIN_PROBABILITY:
            break
        probes = estimate.probes(point.input, PROBES, refinement.start.rng)
        for probe in (yield from refinement.probe(probes)):
            estimate.learn(point, probe)
        step, gradient = suppression_direction(boundary, estimate, point)
        squared = max(float((gradient**2).sum()), 1e-12)
        back = -boundary.margin(point.first) / squared * gradient
        levels = space.levels(point.input)
        candidates = [
            space.dithered(levels + s * step + back, refinement.start.rng) for s in STEP_SHARES
        ]
        batch = yield from refinement.evaluate(candidates)
        for evaluated in batch:
            estimate.learn(point, evaluated)
        point = max(
            (point, *batch), key=lambda evaluated: decision_probability(boundary, evaluated)
        )
    return point


def climb(
    refinement: TriggerRefinement,
    boundary: DecisionBoundary,
    estimate: GradientEstimate,
    point: EvaluatedInput,
    until: int,
    enough: float,
) -> QueryGenerator[EvaluatedInput]:
    """Increase the strength by sidesteps from the strongest input so far, several at a time.

    Where the sides do not have the two decisions yet, the first side is held just within its own
    decision until the second changes to the other one.

    Returns:
        The strongest input, when the trigger is strong enough or no more than `until` queries are
        left.

    """
    rng = refinement.start.rng

    def order(evaluated: EvaluatedInput) -> tuple[float, float]:
        return decision_strength(boundary, evaluated), -abs(
            boundary.margin(evaluated.first) - MARGIN_INCREASE
        )

    while refinement.left > until and _strength(refinement, refinement.trigger.outcome) < enough:
        gradient = margin_gradient(boundary, estimate, point)
        begin, step = 0.0, sidestep
        if decision_strength(boundary, point) > 0.0:
            begin, step = boundary.margin(point.first), partial_sidestep
        aims = begin + rng.exponential(MARGIN_INCREASE, BATCH)
        candidates = [step(refinement, boundary, gradient, point, float(aim)) for aim in aims]
        batch = yield from refinement.evaluate(candidates)
        for evaluated in batch:
            estimate.learn(point, evaluated)
        best = max(batch, key=order)
        if order(best) > order(point):
            point = best
            yield from _keep(refinement, boundary, best)
    return point


def decision_strength(boundary: DecisionBoundary, evaluated: EvaluatedInput) -> float:
    """Return the strength where the two sides have the two decisions, else 0."""
    (rival,) = boundary.rivals
    if evaluated.first.decision != boundary.home or evaluated.second.decision != rival:
        return 0.0
    return evaluated.first.strength_against(evaluated.second) or 0.0


def decision_probability(boundary: DecisionBoundary, evaluated: EvaluatedInput) -> float:
    """Return the first side's probability of the two decisions together."""
    return float(evaluated.first.probabilities[[boundary.home, *boundary.rivals]].sum())


def suppression_direction(
    boundary: DecisionBoundary, estimate: GradientEstimate, point: EvaluatedInput
) -> tuple[Real, Real]:
    """Return a step along the boundary that should suppress other classes, and the normal.

    The logarithm of the probability of the two decisions grows fastest along the combination of
    scores that weighs each by its probability among the two, less its probability among all.
    """
    scores = point.first.scores
    two = [boundary.home, *boundary.rivals]
    everything = np.exp(scores - scores.max())
    among = np.zeros_like(scores)
    among[two] = everything[two] / everything[two].sum()
    model = estimate.linear_model(point.input)
    gradient = model.gradient(boundary.contrasts(len(scores))[0])
    rising = model.gradient(among - everything / everything.sum())
    rising -= (rising * gradient).sum() / max(float((gradient**2).sum()), 1e-12) * gradient
    length = max(float(np.linalg.norm(rising)), 1e-12)
    wanted = log(1.0 / max(decision_probability(boundary, point), 1e-9)) / length
    return rising / length * min(1.5 * wanted, MAX_STEP_RMS * sqrt(rising.size)), gradient


def _keep(
    refinement: TriggerRefinement, boundary: DecisionBoundary, evaluated: EvaluatedInput
) -> QueryGenerator[bool]:
    def is_stronger(outcome: Outcome) -> bool:
        decisions = [answer.decision for answer in compared(refinement.start.goal, outcome)]
        return decisions == [boundary.home, *boundary.rivals] and _strength(
            refinement, outcome
        ) > _strength(refinement, refinement.trigger.outcome)

    if not evaluated.deviates or decision_strength(boundary, evaluated) <= _strength(
        refinement, refinement.trigger.outcome
    ):
        return False
    return (yield from refinement.keep(evaluated, is_stronger))


def _strength(refinement: TriggerRefinement, outcome: Outcome) -> float:
    return refinement.start.goal.strength(outcome) or 0.0


def _strengthen_blocks(refinement: TriggerRefinement, enough: float) -> QueryGenerator[Trigger]:
    """Change one random block after the other, until the trigger is strong enough.

    Returns:
        The strongest trigger, when the budget is spent or the strength is reached.

    """

    def is_stronger(outcome: Outcome) -> bool:
        return _strength(refinement, outcome) > _strength(refinement, refinement.trigger.outcome)

    try:
        while _strength(refinement, refinement.trigger.outcome) < enough:
            candidates = [_changed(refinement) for _ in range(_TRIED_BLOCKS)]
            batch: list[EvaluatedInput] = yield from refinement.evaluate(candidates)
            best = max(
                batch,
                key=lambda evaluated: evaluated.first.strength_against(evaluated.second) or 0.0,
            )
            now = _strength(refinement, refinement.trigger.outcome)
            if best.deviates and (best.first.strength_against(best.second) or 0.0) > now:
                yield from refinement.keep(best, is_stronger)
    except RefinementOver:
        pass
    return refinement.trigger


def _changed(refinement: TriggerRefinement) -> Input:
    """Return the trigger with one block of its change scaled, or with noise in one block."""
    start, rng = refinement.start, refinement.start.rng
    one, space = refinement.trigger.input, refinement.start.space
    if rng.random() < 0.5:
        other = grown(space, start.seed, one, rng)
    else:
        levels = space.levels(one)
        other = space.nearest(levels + rng.normal(0.0, _NOISE, levels.shape))
    return with_block(one, other, random_block(space.cells(one.shape), rng))
