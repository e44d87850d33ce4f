"""Climb: increases the distance of the two compared arms, for tasks without decisions to choose.

Where a model gives values there is no decision boundary to follow, but the distance of the two arms
is known at every input. First changes of the seed are compared; then the best inputs so far are
changed. A change is a mutation by the operators of the run, or a wave in one block: gradients of
models lie mostly in low frequencies (`refining.gradient_estimate`), so a wave moves their outputs
farther than noise of its length. Most changes are of one block alone, since a change of the whole
input nearly always undoes what made the two arms differ. What kind of change is tried is chosen by
how often it helped. The host answers first; the device is queried where its surrogate deviates
(`surrogate`).

Paper: none. DFlare (TOSEM 2023) increases |p_f - p_g|, §3.3, by mutations of the whole input.

Differences from the original
    There is no original.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from edgeflare.core.goal import Trigger
from edgeflare.core.input_space import Input
from edgeflare.core.query import Outcome, Query
from edgeflare.strategies.block_changes import grown, random_block, with_block, with_wave
from edgeflare.strategies.boundary import TriggerFound
from edgeflare.strategies.operator_pool import mutated
from edgeflare.strategies.strategy import QueryGenerator, SearchGenerator, Start, Strategy
from edgeflare.strategies.strategy_parameters import parameter
from edgeflare.strategies.surrogate_choice import refinement_surrogates

_PATIENCE = 4
"""Times that the device may contradict its surrogate before it is asked itself."""

_BEST = 0.8
"""Share of the changes that start from the best input, and not from another one of the elite."""


@dataclass(frozen=True)
class Climb(Strategy):
    """Climb the distance of the compared arms."""

    summary = "increase the distance of the outputs, by waves and mutations of blocks"
    reads_other_seeds = frozenset()

    first_mutants: int = parameter(
        30,
        "Changes of the seed that are compared before the best of them are changed further:"
        " mutations and waves in turns.",
        at_least=1,
    )
    longest_mutation: int = parameter(
        3,
        "Operators that are applied in a row at most, to make a mutant.",
        at_least=1,
        at_most=1000,
    )
    elite: int = parameter(4, "The best inputs so far, which are changed and crossed.", at_least=2)

    def search(self, start: Start) -> SearchGenerator:
        """Search by climbing the distance."""
        climb = _DistanceClimb(start, self.elite, self.longest_mutation)
        return climb.run(self.first_mutants)


@dataclass(frozen=True, slots=True)
class _ClimbedInput:
    """An input, how far the two arms are apart on it, and how it was made."""

    input: Input
    distance: float
    operators: tuple[str, ...]


class _DistanceClimb:
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
        self._seed = _ClimbedInput(start.seed, self._distance(start.outcome), ())
        self._elite = [self._seed]
        self._changes: tuple[Callable[[_ClimbedInput], _ClimbedInput], ...] = (
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
        at = 0 if self._rng.random() < _BEST else int(self._rng.integers(len(self._elite)))
        rates = self._successes / self._tries
        chosen = int(self._rng.choice(len(rates), p=rates / rates.sum()))
        child = yield from self._evaluate(self._changes[chosen](self._elite[at]))
        self._tries[chosen] += 1.0
        if child.distance > self._elite[at].distance:
            self._successes[chosen] += 1.0
            self._elite[at] = child
            self._elite.sort(key=lambda climbed: -climbed.distance)

    def _enter(self, found: _ClimbedInput) -> None:
        """Let an input into the elite, if it is far enough."""
        self._elite.append(found)
        self._elite.sort(key=lambda climbed: -climbed.distance)
        del self._elite[self._most :]

    def _evaluate(self, candidate: _ClimbedInput) -> QueryGenerator[_ClimbedInput]:
        """Query an input, and the device where its surrogate deviates."""
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
            if self._contradicted == _PATIENCE:
                self._surrogate = self._surrogates[-1]  # the device itself
        return _ClimbedInput(mutant, distance, candidate.operators)

    def _distance(self, outcome: Outcome) -> float:
        first, second = self._surrogate.sides(outcome)
        return 0.0 if first.failure or second.failure else first.distance(second)

    def _mutate(self, parent: _ClimbedInput) -> _ClimbedInput:
        """Apply some operators to the whole input."""
        mutant, names = parent.input, parent.operators
        for _ in range(1 + int(self._rng.integers(self._longest))):
            operator = self._start.operators[int(self._rng.integers(len(self._start.operators)))]
            mutant, names = mutated(operator, mutant, self._rng), (*names, operator.name)
        return _ClimbedInput(mutant, 0.0, names)

    def _mutate_block(self, parent: _ClimbedInput) -> _ClimbedInput:
        """Apply some operators to one block."""
        mutant = self._mutate(parent)
        return self._with_block(parent, mutant.input, mutant.operators)

    def _cross_block(self, parent: _ClimbedInput) -> _ClimbedInput:
        """Take one block of another one of the elite."""
        other = self._elite[int(self._rng.integers(len(self._elite)))]
        return self._with_block(parent, other.input, (*parent.operators, "cross"))

    def _grow(self, parent: _ClimbedInput) -> _ClimbedInput:
        """Scale the change of the seed."""
        whole = grown(self._start.space, self._start.seed, parent.input, self._rng)
        return _ClimbedInput(whole, 0.0, (*parent.operators, "grow"))

    def _grow_block(self, parent: _ClimbedInput) -> _ClimbedInput:
        """Scale the change of the seed in one block."""
        whole = grown(self._start.space, self._start.seed, parent.input, self._rng)
        return self._with_block(parent, whole, (*parent.operators, "grow"))

    def _add_wave(self, parent: _ClimbedInput) -> _ClimbedInput:
        """Add a wave in one block."""
        start = self._start
        block = random_block(start.space.cells(parent.input.shape), self._rng)
        whole = with_wave(start.space, start.bounds, parent.input, block, self._rng)
        return _ClimbedInput(whole, 0.0, (*parent.operators, "wave"))

    def _with_block(
        self, parent: _ClimbedInput, other: Input, operators: tuple[str, ...]
    ) -> _ClimbedInput:
        block = random_block(self._start.space.cells(parent.input.shape), self._rng)
        return _ClimbedInput(with_block(parent.input, other, block), 0.0, operators)
