"""DFlare, exactly as its paper writes it, and the paper's two ablations.

An input is mutated over and over. A mutant is accepted when it increases the distance of the two
models' top-1 probabilities, or keeps it and shows a state not seen before. Operators whose mutants
were accepted are chosen more often.

Paper: Tian, Zhang, Wen, Cheung, Sun, Chen, Sun: "Finding Deviated Behaviors of the Compressed DNN
Models for Image Classifications", TOSEM 2023. Algorithms 1 and 2, §3.2 to §3.4; ablations §5.3.

Differences from the original
    None from the paper's text that we know of. (Its published code is another algorithm:
    `dflare_published`.) f and g are the two arms that the goal compares. Where the paper is silent:

    - The seed is the first state that is seen, so O(seed) = 1 in H(x_max) at the start.
    - A state is new above a squared L2 distance of 0.5 to all before it, as in the published code;
      nearest neighbours are exact, not approximate.
    - O of x_max keeps the value that it had when x_max was accepted, and N_i counts acceptances.
    - Operators of equal ranking value keep the order of the paper's Table 3.
    - The ranges of the operators are those of the published code.
    - A deviation that does not count (a tie, or too weak) is a mutant like any other.
    - A mutant out of the bounds of the run (`--max-linf`, `--max-l2`) is brought back to them; the
      paper has none, and `none` turns them off.

A state is the answer of the compared arms: their probability vectors, concatenated. Whether one is
new the paper asks a nearest-neighbour index, its published code FLANN. At the sizes of a chain, up
to a few thousand states of a few dozen numbers, plain numpy is exact and faster: an index must be
rebuilt as states arrive, while a mutant's nearest state is nearly always among the newest, the last
of all in most cases, which are compared first (`benchmarks/novelty.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.goal import Goal
from edgeflare.core.query import Outcome
from edgeflare.strategies.mutation_loop import MetropolisHastings, Uniform, mutation_loop
from edgeflare.strategies.strategy import SearchGenerator, Start, Strategy
from edgeflare.strategies.strategy_parameters import parameter

NOVELTY_THRESHOLD = 0.5
"""Squared L2 distance to every state seen above which a state is new.

The paper gives no figure; this is the published code's.
"""


_NEWEST = 64
"""Number of the newest states, which are compared first."""

_SURELY = 1 - 1e-9
"""Share of the threshold below which a distance is, however its sum is rounded."""


DISTANCE_TOLERANCE = 1e-3
"""The paper's delta: distances closer than this count as equal."""


Fitness = Callable[[Outcome], float]
"""Returns the fitness of an input from its outcome; higher is better. It may depend on the outcomes
before."""


@dataclass(frozen=True)
class NoveltyParameters(Strategy):
    """The parameters of fitness by distance and novelty."""

    distance_tolerance: float = parameter(
        DISTANCE_TOLERANCE,
        "Delta of H = D / delta + O: distances of top-1 probabilities closer than this count as"
        " equal, and novelty decides. The paper's.",
        above=0.0,
    )
    novelty_threshold: float = parameter(
        NOVELTY_THRESHOLD,
        "Squared L2 distance to all states seen above which a state is new. The published code's,"
        " since the paper gives none.",
        at_least=0.0,
    )

    def acceptance(self, start: Start) -> AtLeastAsFit:
        """Return the acceptance of mutants by H."""
        fitness = DistanceAndNovelty(start.goal, self.distance_tolerance, self.novelty_threshold)
        return AtLeastAsFit(fitness, start.outcome)


@dataclass(frozen=True)
class DFlare(NoveltyParameters):
    """DFlare, Algorithms 1 and 2; p = 1 / number of operators."""

    summary = "DFlare, Algorithms 1 and 2 as the paper writes them"
    draws_from_pool = False
    needs_paper_operators = True
    reads_other_seeds = frozenset()

    def search(self, start: Start) -> SearchGenerator:
        """Search as the paper's Algorithms 1 and 2 do."""
        selection = MetropolisHastings(start.paper_operators, start.rng)
        return mutation_loop(start, selection, self.acceptance(start))


@dataclass(frozen=True)
class DFlareD(Strategy):
    """The ablation DFlare_D: H = D, without state novelty."""

    summary = "DFlare without state novelty (the paper's ablation)"
    draws_from_pool = False
    needs_paper_operators = True
    reads_other_seeds = frozenset()

    def search(self, start: Start) -> SearchGenerator:
        """Search as the paper's ablation does."""
        selection = MetropolisHastings(start.paper_operators, start.rng)
        fitness = partial(distance, goal=start.goal)
        return mutation_loop(start, selection, AtLeastAsFit(fitness, start.outcome))


@dataclass(frozen=True)
class DFlareR(NoveltyParameters):
    """The ablation DFlare_R: operators drawn uniformly."""

    summary = "DFlare with operators drawn uniformly (the paper's ablation)"
    draws_from_pool = False
    needs_paper_operators = True
    reads_other_seeds = frozenset()

    def search(self, start: Start) -> SearchGenerator:
        """Search as the paper's ablation does."""
        selection = Uniform(start.paper_operators, start.rng)
        return mutation_loop(start, selection, self.acceptance(start))


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
            goal: the goal of the search: which arms are compared.
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
    one, other = goal.compared
    return outcome.answers[one].distance(outcome.answers[other])


def state(outcome: Outcome, goal: Goal) -> NDArray[np.float64]:
    """Return the states of the two compared arms, such as probabilities, one after the other."""
    one, other = goal.compared
    return np.concatenate((outcome.answers[one].state(), outcome.answers[other].state()))


class SeenStates:
    """A growing set of states, all of one length."""

    def __init__(self, threshold: float = NOVELTY_THRESHOLD) -> None:
        self._threshold = threshold
        self._surely_near = threshold * _SURELY
        self._rows = np.empty((0, 0))
        self._count = 0

    def is_new(self, state: NDArray[np.float64]) -> bool:
        """Whether no state seen is within the threshold of `state`, of shape (length,)."""
        last, split = max(0, self._count - 1), max(0, self._count - _NEWEST)
        if self._count:
            apart = self._rows[last] - state
            if apart.dot(apart) < self._surely_near:
                return False
        return self._is_apart(self._rows[split : self._count], state) and self._is_apart(
            self._rows[:split], state
        )

    def add(self, state: NDArray[np.float64]) -> None:
        """Add `state`, of shape (length,), to those seen."""
        if self._count == len(self._rows):
            grown = np.empty((max(_NEWEST, 2 * self._count), state.size))
            grown[: self._count] = self._rows[: self._count].reshape(self._count, state.size)
            self._rows = grown
        self._rows[self._count] = state
        self._count += 1

    def _is_apart(self, rows: NDArray[np.float64], state: NDArray[np.float64]) -> bool:
        """Whether the state is new to all rows, (rows, length). True where there are no rows.

        This takes no matrix product, which would be a little faster over many rows: its last digit
        depends on the BLAS and its threads, and results here depend on the run seed alone.
        """
        if not len(rows):
            return True
        apart = rows - state
        return bool(np.einsum("ij,ij->i", apart, apart).min() > self._threshold)
