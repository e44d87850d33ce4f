"""Strengthening: make a triggering input's two arms disagree more confidently, labels unchanged.

First away from all other classes, whose shares no deviation can have; then uphill, one rounding of
the image after the other, with the first arm held just beyond where it is.
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np

from edgeflare.core.outcome import Outcome
from edgeflare.core.strength import strength
from edgeflare.core.trigger import Trigger
from edgeflare.search.refining.between_boundaries import BATCH, aside, partly_aside, steepest
from edgeflare.search.refining.decision_boundary import DecisionBoundary, Real
from edgeflare.search.refining.gradient_estimate import GradientEstimate, dithered
from edgeflare.search.refining.trigger_refinement import (
    BudgetSpentError,
    EvaluatedInput,
    Part,
    TriggerRefinement,
)
from edgeflare.search.strategy import Start
from edgeflare.search.surrogates.surrogate import compared

ENOUGH = 0.85
"""Share of the two labels at which other classes are no longer in the way."""

ROUNDS, PROBES = 4, 24
"""Rounds at most to get there, and probes of the slope in each: a third of 300 queries."""

STRIDES = (1.0, 0.5, 0.25)
"""Shares of the way there that are tried."""

LONGEST = 20.0
"""Gray levels, root mean square, of that way: the slope is no longer true beyond."""

RISE = 0.04
"""Mean by which the first side's margin is aimed higher: the second's is held by its rounding, and
each step beyond is a third as likely to hold."""


def strengthen(trigger: Trigger, start: Start, budget: int, enough: float = 1.0) -> Part[Trigger]:
    """Make a trigger stronger with at most so many queries; returns the strongest.

    Args:
        trigger: the triggering input.
        start: its seed, what counts, and the generator.
        budget: how many inputs may be looked at.
        enough: the strength at which it ends.

    """
    trial = TriggerRefinement(trigger, start, budget)
    first, second = compared(start.goal, trigger.outcome)
    if first.label is None or second.label is None:
        return trigger
    border = DecisionBoundary(first.label, (second.label,))
    slope = GradientEstimate(start.image, len(first.scores))
    found = trial.at_trigger()
    slope.learn(trial.at_seed(), found)
    if _strength(trial, trigger.outcome) >= enough:
        return trigger
    try:
        place = yield from away_from_others(trial, border, slope, found)
        place = yield from uphill(trial, border, slope, place, trial.left // 2, enough)
        if height(border, place) == 0.0:
            place = found
        yield from uphill(trial, border, slope, place, 0, enough)
    except BudgetSpentError:
        pass
    return trial.trigger


def away_from_others(
    trial: TriggerRefinement,
    border: DecisionBoundary,
    slope: GradientEstimate,
    here: EvaluatedInput,
) -> Part[EvaluatedInput]:
    """Go along the border to where the two labels have nearly all of the probability."""
    for _ in range(ROUNDS):
        if share(border, here) >= ENOUGH:
            break
        for seen in (yield from trial.look(slope.probes(here.image, PROBES, trial.start.rng))):
            slope.learn(here, seen)
        way, gradient = escape(border, slope, here)
        squared = max(float((gradient**2).sum()), 1e-12)
        back = -border.margin(here.first) / squared * gradient
        images = [dithered(here.image + s * way + back, trial.start.rng) for s in STRIDES]
        looked = yield from trial.look(images)
        for seen in looked:
            slope.learn(here, seen)
        here = max((here, *looked), key=lambda seen: share(border, seen))
    return here


def uphill(
    trial: TriggerRefinement,
    border: DecisionBoundary,
    slope: GradientEstimate,
    here: EvaluatedInput,
    until: int,
    enough: float,
) -> Part[EvaluatedInput]:
    """Climb, a few steps aside at once, from the highest place so far.

    Where the two labels do not stand against each other yet, the first side is held just within
    its own label until the second goes over.

    Returns:
        The highest place, when the trigger is strong enough or no more than `until` inputs may be
        looked at.

    """
    rng = trial.start.rng

    def rank(seen: EvaluatedInput) -> tuple[float, float]:
        return height(border, seen), -abs(border.margin(seen.first) - RISE)

    while trial.left > until and _strength(trial, trial.trigger.outcome) < enough:
        gradient = steepest(border, slope, here)
        begin, step = 0.0, aside
        if height(border, here) > 0.0:
            begin, step = border.margin(here.first), partly_aside
        aims = begin + rng.exponential(RISE, BATCH)
        images = [step(trial, border, gradient, here, float(aim)) for aim in aims]
        looked = yield from trial.look(images)
        for seen in looked:
            slope.learn(here, seen)
        best = max(looked, key=rank)
        if rank(best) > rank(here):
            here = best
            yield from _keep(trial, border, best)
    return here


def height(border: DecisionBoundary, seen: EvaluatedInput) -> float:
    """Return what is climbed: the strength with which the two labels stand against each other."""
    (rival,) = border.rivals
    if seen.first.label != border.home or seen.second.label != rival:
        return 0.0
    return strength(seen.first, seen.second) or 0.0


def share(border: DecisionBoundary, seen: EvaluatedInput) -> float:
    """Return the first side's probability of the two labels together."""
    return float(seen.first.probabilities[[border.home, *border.rivals]].sum())


def escape(
    border: DecisionBoundary, slope: GradientEstimate, here: EvaluatedInput
) -> tuple[Real, Real]:
    """Return the way along the border on which the other classes should vanish, and its gradient.

    The logarithm of the share of the two labels grows fastest along the combination of scores
    that weighs each by its probability among the two, less its probability among all.
    """
    scores = here.first.scores
    two = [border.home, *border.rivals]
    everything = np.exp(scores - scores.max())
    among = np.zeros_like(scores)
    among[two] = everything[two] / everything[two].sum()
    plane = slope.around(here.image)
    gradient = plane.gradient(border.contrasts(len(scores))[0])
    rising = plane.gradient(among - everything / everything.sum())
    rising -= (rising * gradient).sum() / max(float((gradient**2).sum()), 1e-12) * gradient
    length = max(float(np.linalg.norm(rising)), 1e-12)
    wanted = log(1.0 / max(share(border, here), 1e-9)) / length
    return rising / length * min(1.5 * wanted, LONGEST * sqrt(rising.size)), gradient


def _keep(trial: TriggerRefinement, border: DecisionBoundary, seen: EvaluatedInput) -> Part[bool]:
    def is_stronger(outcome: Outcome) -> bool:
        labels = [answer.label for answer in compared(trial.start.goal, outcome)]
        return labels == [border.home, *border.rivals] and _strength(trial, outcome) > _strength(
            trial, trial.trigger.outcome
        )

    if not seen.deviates or height(border, seen) <= _strength(trial, trial.trigger.outcome):
        return False
    return (yield from trial.keep(seen, is_stronger))


def _strength(trial: TriggerRefinement, outcome: Outcome) -> float:
    return strength(*compared(trial.start.goal, outcome)) or 0.0
