"""The fitness of a non-triggering mutant, and its acceptance by fitness (paper §3.3.2)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.goal import Goal
from edgeflare.core.outcome import Outcome
from edgeflare.search.state_novelty import NOVELTY_THRESHOLD, SeenStates

DISTANCE_TOLERANCE = 1e-3
"""The paper's delta: distances closer than this count as equal."""

Fitness = Callable[[Outcome], float]
"""Of an input, by its outcome; the higher the better. It may depend on the outcomes before."""


class AtLeastAsFit:
    """Accept a mutant at least as fit as the last accepted input, at first the seed.

    That input keeps the fitness that it had when it was accepted.
    """

    def __init__(self, fitness: Fitness, seed: Outcome) -> None:
        self._fitness = fitness
        self._best = fitness(seed)

    def __call__(self, mutant: Outcome) -> bool:
        """Judge a mutant."""
        value = self._fitness(mutant)
        if value < self._best:
            return False
        self._best = value
        return True


class DistanceAndNovelty:
    """H = D / delta + O: the distance of the compared arms, and 1 where their state is new.

    Every state that is evaluated counts as seen from then on, new or not.
    """

    def __init__(
        self,
        goal: Goal,
        tolerance: float = DISTANCE_TOLERANCE,
        novelty_threshold: float = NOVELTY_THRESHOLD,
    ) -> None:
        """Begin with no state.

        Args:
            goal: which arms are compared.
            tolerance: delta, distances closer than which count as equal.
            novelty_threshold: squared L2 distance to all states seen above which one is new.

        """
        self._goal = goal
        self._tolerance = tolerance
        self._seen = SeenStates(novelty_threshold)

    def __call__(self, outcome: Outcome) -> float:
        """Return H of an input that is not triggering."""
        current = state(outcome, self._goal)
        novelty = self._seen.is_new(current)
        self._seen.add(current)
        return distance(outcome, self._goal) / self._tolerance + novelty


def distance(outcome: Outcome, goal: Goal) -> float:
    """Return D: |p_1 - p_2| of the compared arms' top-1 probabilities, or the task's distance."""
    first, second = (outcome[arm] for arm in goal.compared)
    return first.distance(second)


def state(outcome: Outcome, goal: Goal) -> NDArray[np.float64]:
    """Return the states of the two compared arms, such as probabilities, one after the other."""
    first, second = goal.compared
    return np.concatenate((outcome[first].state(), outcome[second].state()))
