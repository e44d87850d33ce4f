"""FGSM and PGD: ordinary attacks on the original alone. Baselines of a search for deviations.

Each raises the original's cross entropy at the class that it gives to the seed, by steps along the
sign of the gradient, within a radius of the seed. The attack does not know of the twin. Every input
that it makes is judged, though: a deviation is what an ordinary attack happens to find at a radius,
which says how robust the two models' agreement is.

Papers: Goodfellow, Shlens, Szegedy: "Explaining and Harnessing Adversarial Examples", ICLR 2015,
section 4. Madry, Makelov, Schmidt, Tsipras, Vladu: "Towards Deep Learning Models Resistant to
Adversarial Attacks", ICLR 2018, section 2.1.

Differences from the originals
    - The class is the one that the original gives to the seed, not the true one.
    - What is looked for is a deviation of the two models, and no wrong answer of one. An attack
      goes on beyond the original's decision boundary.
    - Points are rounded to inputs before they are judged, and before the next gradient.
    - The bounds of a run hold beside the radius.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from edgeflare.core.bounds import Bounds
from edgeflare.core.input_space import Input, Real
from edgeflare.core.query import Arm, GradientQuery, TranslatedOutcome
from edgeflare.strategies.strategy import SearchGenerator, Start, Strategy, WhiteboxGenerator
from edgeflare.strategies.strategy_parameters import parameter
from edgeflare.strategies.surrogate import confirmed, translated

MOST_LEVELS: Final = 1e9
"""Levels of a radius or a step at most: sums of such are still finite."""


@dataclass(frozen=True)
class FGSM(Strategy):
    """One step along the sign of the original's gradient: the fast gradient sign method."""

    summary = "one gradient-sign step against the original, a baseline (extra whitebox)"
    draws_from_pool = False
    needs_choices = True
    needs_gradients = True
    reads_other_seeds = frozenset()

    radius: float = parameter(
        8.0,
        "By how much each value changes, in levels (L∞). 8 is usual for photographs; the paper has"
        " 64 for digits.",
        above=0.0,
        at_most=MOST_LEVELS,
    )

    def search(self, start: Start) -> SearchGenerator:
        """Search by one step."""
        near = _within(start, self.radius)
        told = yield from translated(start.seed)
        gradient = yield from _loss_gradient(start.seed, told, _label(told))
        real = start.space.levels(start.seed) + self.radius * np.sign(gradient)
        one = near.project(start.space.nearest(real), start.seed)
        told = yield from translated(one)
        return (yield from confirmed(start, one, told, "fgsm"))


@dataclass(frozen=True)
class PGD(Strategy):
    """Steps along the sign of the original's gradient, projected to a ball around the seed."""

    summary = "projected gradient-sign steps against the original, a baseline (extra whitebox)"
    version = 2
    draws_from_pool = False
    needs_choices = True
    needs_gradients = True
    reads_other_seeds = frozenset()

    radius: float = parameter(
        8.0,
        "The most that a value changes, in levels (L∞). The paper's for photographs; it has 76.5"
        " for digits.",
        above=0.0,
        at_most=MOST_LEVELS,
    )
    step: float = parameter(
        2.0,
        "Levels that a step changes each value by. The paper's for photographs.",
        above=0.0,
        at_most=MOST_LEVELS,
    )
    iterations: int = parameter(
        20, "Steps from one seed. The paper evaluates photographs with 20.", at_least=1
    )
    random_start: bool = parameter(
        True,
        "Whether the first step begins at a random point of the ball, as the paper's does, and not"
        " at the seed.",
    )

    def search(self, start: Start) -> SearchGenerator:
        """Search by many steps."""
        near, space = _within(start, self.radius), start.space
        origin, one = space.levels(start.seed), start.seed
        fall, rise = (np.clip(most, -self.radius, self.radius) for most in space.limits(one))
        told = yield from translated(one)
        label = _label(told)
        if self.random_start:
            offset = start.rng.uniform(-self.radius, self.radius, origin.shape)
            one = near.project(space.nearest(origin + offset), start.seed)
            told = yield from translated(one)
            trigger = yield from confirmed(start, one, told, "pgd")
            if trigger is not None:
                return trigger
        real = space.levels(one)
        for _ in range(self.iterations):
            gradient = yield from _loss_gradient(one, told, label)
            real = np.clip(real + self.step * np.sign(gradient), origin + fall, origin + rise)
            one = near.project(space.nearest(real), start.seed)
            told = yield from translated(one)
            trigger = yield from confirmed(start, one, told, "pgd")
            if trigger is not None:
                return trigger
        return None


def _within(start: Start, radius: float) -> Bounds:
    """Return the bounds of a run, and a radius beside them."""
    linf = start.bounds.max_linf
    return Bounds(radius if linf is None else min(radius, linf), start.bounds.max_l2, start.space)


def _label(told: TranslatedOutcome) -> int:
    return told.outcome[Arm.ORIGINAL].decision or 0


def _loss_gradient(input_: Input, told: TranslatedOutcome, label: int) -> WhiteboxGenerator[Real]:
    """Return the gradient of the original's cross entropy, but for its length."""
    weights = loss_weights(told.scores[Arm.ORIGINAL], label)
    answer: Real = yield GradientQuery(input_, Arm.ORIGINAL, weights)
    return answer


def loss_weights(scores: Real, label: int) -> Real:
    """Return the gradient of the cross entropy at a label by the scores, but for its length.

    It is p - e, p being the probabilities and e the label's unit vector. Divided by 1 - p[label] it
    is what is returned, so that it does not vanish where the model is sure.

    Args:
        scores: (choices,), before a last softmax.
        label: the choice.

    """
    others = scores.copy()
    others[label] = -np.inf
    weights: Real = np.exp(others - others.max())
    weights /= weights.sum()
    weights[label] = -1.0
    return weights
