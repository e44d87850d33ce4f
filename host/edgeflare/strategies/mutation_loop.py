"""The loop of Algorithm 1 (paper §3.2), with two exchangeable parts.

The last accepted input is mutated and the mutant is queried; the search ends if the mutant triggers
and goes on from it if it is accepted. A `Selection` chooses the next operator (§3.4), an
`Acceptance` decides which mutants are accepted. The time limit is not here: the campaign stops
asking.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from edgeflare.core.goal import Trigger
from edgeflare.core.query import Outcome, Query
from edgeflare.strategies.operator_pool import mutated
from edgeflare.strategies.strategy import SearchGenerator, Start
from edgeflare_operators import MutationOperator

Acceptance = Callable[[Outcome], bool]
"""Given the outcome of each non-triggering mutant in turn: whether it becomes the next parent."""


def mutation_loop(start: Start, selection: Selection, accepts: Acceptance) -> SearchGenerator:
    """Return a search that mutates one input over and over."""
    candidate, names = start.seed, list[str]()
    needed = start.goal.needed
    while True:
        operator = selection.choose()
        mutant = start.bounds.project(mutated(operator, candidate, start.rng), start.seed)
        (outcome,) = yield (Query(mutant, needed),)
        kind = start.goal.met(outcome)
        if kind is not None:
            return Trigger(mutant, kind, outcome, (*names, operator.name))
        if accepts(outcome):
            candidate = mutant
            names.append(operator.name)
            selection.reward()


class Selection(Protocol):
    """Chooses operators one after the other, and is rewarded where a mutant was accepted."""

    def choose(self) -> MutationOperator:
        """Choose the next operator."""

    def reward(self) -> None:
        """Count the operator last chosen as a success: its mutant was accepted."""


class Uniform:
    """Every operator as likely, always."""

    def __init__(self, pool: Sequence[MutationOperator], rng: np.random.Generator) -> None:
        self._pool = pool
        self._rng = rng

    def choose(self) -> MutationOperator:
        """Choose the next operator."""
        return self._pool[int(self._rng.integers(len(self._pool)))]

    def reward(self) -> None:
        """Learn nothing."""


class MetropolisHastings:
    """Algorithm 2: prefer operators whose mutants were accepted more often.

    The first operator is uniform. The paper does not say how equal ranking values are ordered; here
    they keep the order of the pool, so that the pool and the generator alone decide.
    """

    def __init__(self, pool: Sequence[MutationOperator], rng: np.random.Generator) -> None:
        self._pool = pool
        self._rng = rng
        self._counts = AcceptanceCounts(len(pool))
        self._last: int | None = None

    def choose(self) -> MutationOperator:
        """Choose the next operator."""
        if self._last is None:
            self._last = int(self._rng.integers(len(self._pool)))
        else:
            values = self._counts.values
            ranked = sorted(range(len(values)), key=values.__getitem__, reverse=True)
            self._last = ranked[draw_rank(len(ranked), ranked.index(self._last), self._rng)]
        self._counts.select(self._last)
        return self._pool[self._last]

    def reward(self) -> None:
        """Count the operator last chosen as a success: its mutant was accepted."""
        if self._last is not None:
            self._counts.accept(self._last)


class AcceptanceCounts:
    """How often each operator of a pool was selected (N_op), and its mutant accepted (N_i).

    Attributes:
        values: ranking value of each operator, v = N_i / (N_op + 1e-7).

    """

    def __init__(self, size: int) -> None:
        self._selected = [0] * size
        self._accepted = [0] * size
        self.values = [0.0] * size

    def select(self, operator: int) -> None:
        """Count that an operator was selected, given its place in the pool."""
        self._selected[operator] += 1
        self._value(operator)

    def accept(self, operator: int) -> None:
        """Count that a mutant of an operator was accepted, given its place in the pool."""
        self._accepted[operator] += 1
        self._value(operator)

    def _value(self, operator: int) -> None:
        self.values[operator] = self._accepted[operator] / (self._selected[operator] + 1e-7)


def draw_rank(count: int, previous: int, rng: np.random.Generator) -> int:
    """Draw one of `count` ranks, given the rank of the previous operator (Algorithm 2, lines 4-8).

    Ranks are drawn uniformly until one is accepted, with probability (1 - p)^(rank - previous) and
    p = 1 / count.
    """
    base = 1.0 - 1.0 / count
    while True:
        rank = int(rng.integers(count))
        if rng.random() < base ** (rank - previous):
            return rank
