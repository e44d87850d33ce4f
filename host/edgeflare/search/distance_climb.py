"""The loop of the strategy `climb`: changes of the best inputs, and what is learned from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from edgeflare.core.input import Input
from edgeflare.core.outcome import Outcome
from edgeflare.core.query import Query
from edgeflare.core.trigger import Trigger
from edgeflare.search.block_changes import grown, random_block, with_block, with_wave
from edgeflare.search.boundary_search import TriggerFound
from edgeflare.search.mutation import mutated
from edgeflare.search.strategy import QueryGenerator, SearchGenerator, Start
from edgeflare.search.surrogates.surrogate_choice import refinement_surrogates

PATIENCE = 4
"""Times that the device may contradict its surrogate before it is asked itself."""

BEST = 0.8
"""Share of the changes that start from the best input, and not from another one of the elite."""


@dataclass(frozen=True, slots=True)
class ClimbedInput:
    """An input, how far the two arms are apart on it, and how it was made."""

    input: Input
    distance: float
    operators: tuple[str, ...]


class DistanceClimb:
    """A climb from one seed."""

    def __init__(self, start: Start, elite: int, longest_mutation: int) -> None:
        """Begin with the seed.

        Args:
            start: what the search begins with.
            elite: how many of the best inputs are kept.
            longest_mutation: operators that are applied in a row at most.

        """
        self._start, self._rng = start, start.rng
        self._most, self._longest = elite, longest_mutation
        self._surrogates = refinement_surrogates(start.goal, start.ensemble)
        self._surrogate = self._surrogates[0]
        if not (start.host_predicts and self._surrogate.is_answered_by(start.outcome)):
            self._surrogate = self._surrogates[-1]
        self._contradicted = 0
        self._seed = ClimbedInput(start.seed, self._distance(start.outcome), ())
        self._elite = [self._seed]
        self._changes: tuple[Callable[[ClimbedInput], ClimbedInput], ...] = (
            self._mutate,
            self._mutate_block,
            self._cross_block,
            self._grow,
            self._grow_block,
            self._add_wave,
        )
        self._tries = np.full(len(self._changes), 2.0)
        self._successes = np.ones(len(self._changes))

    def run(self, first_mutants: int) -> SearchGenerator:
        """Climb until a trigger is found.

        Args:
            first_mutants: changes of the seed to begin with, mutations and waves in turns.

        """
        try:
            for number in range(first_mutants):
                change = (self._mutate, self._add_wave)[number % 2]
                self._enter((yield from self._evaluate(change(self._seed))))
            while True:
                yield from self._change()
        except TriggerFound as found:
            return found.trigger

    def _change(self) -> QueryGenerator[None]:
        """Change one of the elite; what is farther takes its place."""
        at = 0 if self._rng.random() < BEST else int(self._rng.integers(len(self._elite)))
        rates = self._successes / self._tries
        chosen = int(self._rng.choice(len(rates), p=rates / rates.sum()))
        child = yield from self._evaluate(self._changes[chosen](self._elite[at]))
        self._tries[chosen] += 1.0
        if child.distance > self._elite[at].distance:
            self._successes[chosen] += 1.0
            self._elite[at] = child
            self._elite.sort(key=lambda one: -one.distance)

    def _enter(self, one: ClimbedInput) -> None:
        """Let an input into the elite, if it is far enough."""
        self._elite.append(one)
        self._elite.sort(key=lambda one: -one.distance)
        del self._elite[self._most :]

    def _evaluate(self, candidate: ClimbedInput) -> QueryGenerator[ClimbedInput]:
        """Query an input, and the device where its surrogate deviates.

        Raises:
            TriggerFound: the device confirms it.

        """
        start, surrogate = self._start, self._surrogate
        mutant = start.bounds.project(candidate.input, start.seed)
        (outcome,) = yield (Query(mutant, surrogate.arms, surrogate.kernels),)
        distance = self._distance(outcome)
        if surrogate.decide(outcome):
            missing = tuple(arm for arm in start.goal.needed if arm not in outcome.answers)
            if missing:
                (answered,) = yield (Query(mutant, missing, again=True),)
                outcome = Outcome({**outcome.answers, **answered.answers}, outcome.members)
            kind = start.goal.met(outcome)
            if kind is not None:
                raise TriggerFound(Trigger(mutant, kind, outcome, candidate.operators))
            self._contradicted += 1
            if self._contradicted == PATIENCE:
                self._surrogate = self._surrogates[-1]  # the device itself
        return ClimbedInput(mutant, distance, candidate.operators)

    def _distance(self, outcome: Outcome) -> float:
        first, second = self._surrogate.sides(outcome)
        return 0.0 if first.failure or second.failure else first.distance(second)

    def _mutate(self, parent: ClimbedInput) -> ClimbedInput:
        """Apply some operators to the whole input."""
        mutant, names = parent.input, parent.operators
        for _ in range(1 + int(self._rng.integers(self._longest))):
            operator = self._start.operators[int(self._rng.integers(len(self._start.operators)))]
            mutant, names = mutated(operator, mutant, self._rng), (*names, operator.name)
        return ClimbedInput(mutant, 0.0, names)

    def _mutate_block(self, parent: ClimbedInput) -> ClimbedInput:
        """Apply some operators to one block."""
        mutant = self._mutate(parent)
        return self._with_block(parent, mutant.input, mutant.operators)

    def _cross_block(self, parent: ClimbedInput) -> ClimbedInput:
        """Take one block of another one of the elite."""
        other = self._elite[int(self._rng.integers(len(self._elite)))]
        return self._with_block(parent, other.input, (*parent.operators, "cross"))

    def _grow(self, parent: ClimbedInput) -> ClimbedInput:
        """Scale the change of the seed."""
        whole = grown(self._start.space, self._start.seed, parent.input, self._rng)
        return ClimbedInput(whole, 0.0, (*parent.operators, "grow"))

    def _grow_block(self, parent: ClimbedInput) -> ClimbedInput:
        """Scale the change of the seed in one block."""
        whole = grown(self._start.space, self._start.seed, parent.input, self._rng)
        return self._with_block(parent, whole, (*parent.operators, "grow"))

    def _add_wave(self, parent: ClimbedInput) -> ClimbedInput:
        """Add a wave in one block."""
        start = self._start
        block = random_block(start.space.cells(parent.input.shape), self._rng)
        whole = with_wave(start.space, start.bounds, parent.input, block, self._rng)
        return ClimbedInput(whole, 0.0, (*parent.operators, "wave"))

    def _with_block(
        self, parent: ClimbedInput, other: Input, operators: tuple[str, ...]
    ) -> ClimbedInput:
        block = random_block(self._start.space.cells(parent.input.shape), self._rng)
        return ClimbedInput(with_block(parent.input, other, block), 0.0, operators)
