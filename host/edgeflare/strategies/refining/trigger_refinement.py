"""The refinement of one trigger: evaluating within a budget, and keeping what is better.

A surrogate on the host is queried first wherever it shows the deviation too; the device is queried
about what would be kept. Where no surrogate shows it, or the surrogate was wrong about the device
several times in a row, the device is queried itself. Probes of a gradient ask the first side alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from edgeflare.core.answer import Answer
from edgeflare.core.goal import Trigger, cause
from edgeflare.core.input_space import Input
from edgeflare.core.query import Outcome, Query
from edgeflare.strategies.strategy import QueryGenerator, Start
from edgeflare.strategies.surrogate_choice import refinement_surrogates

PATIENCE = 4
"""Times in a row that the device may contradict the surrogate before it is no longer used."""


class RefinementOver(Exception):  # noqa: N818 - an end, not a mistake
    """The budget is spent, or the trigger good enough: the refinement ends with what it has."""


@dataclass(frozen=True, slots=True)
class ProbedInput:
    """An input about which the first compared arm was asked, and perhaps no other.

    Attributes:
        input: the input.
        first: the answer of the first compared arm.

    """

    input: Input
    first: Answer


@dataclass(frozen=True, slots=True)
class EvaluatedInput(ProbedInput):
    """An input that was evaluated on both sides.

    Attributes:
        second: the answer of the second compared arm, or of its surrogate.
        outcome: all answers.
        deviates: whether it is a finding if the device answers as the surrogate does.

    """

    second: Answer
    outcome: Outcome
    deviates: bool


class TriggerRefinement:
    """The refinement of one trigger: what is kept so far, and what may still be asked."""

    def __init__(
        self,
        trigger: Trigger,
        start: Start,
        budget: int,
        enough: Callable[[Input], bool] | None = None,
    ) -> None:
        """Begin with the first surrogate that shows the trigger to deviate, or the device itself.

        Args:
            trigger: what is refined; its outcome tells which surrogates can be used.
            start: the trigger's seed, what counts, and the generator.
            budget: the number of inputs that may be evaluated.
            enough: whether a trigger is good enough for the refinement to end with it; None where
                none is.

        """
        self.trigger = trigger
        self._enough = enough
        self.start = start
        self.left = budget
        self._kind = trigger.kind
        self._cause = cause(trigger.outcome, start.goal.find)
        self._contradicted = 0
        self._surrogates = refinement_surrogates(start.goal, start.ensemble)
        for surrogate in self._surrogates:
            self._surrogate = surrogate
            if surrogate.is_answered_by(trigger.outcome) and self.at_trigger().deviates:
                break

    def evaluate(self, candidates: Sequence[Input]) -> QueryGenerator[list[EvaluatedInput]]:
        """Evaluate inputs, projected onto the bounds; only as many as the budget allows.

        Raises:
            RefinementOver: the budget is spent.

        """
        asked, surrogate = self._spend(candidates), self._surrogate
        outcomes = yield [
            Query(candidate, surrogate.arms, surrogate.kernels) for candidate in asked
        ]
        return [self._evaluated(*pair) for pair in zip(asked, outcomes, strict=True)]

    def probe(self, candidates: Sequence[Input]) -> QueryGenerator[list[ProbedInput]]:
        """Ask the first side alone about inputs; else as `evaluate`, and as much of the budget.

        Of a step whose scores the gradient is estimated from nobody reads what the other side says.
        """
        asked = self._spend(candidates)
        arm, _ = self.start.goal.compared
        outcomes = yield [Query(candidate, (arm,)) for candidate in asked]
        return [ProbedInput(*pair) for pair in zip(asked, (o[arm] for o in outcomes), strict=True)]

    def _spend(self, candidates: Sequence[Input]) -> list[Input]:
        """Return as many inputs as the budget allows, projected; raises as `evaluate`."""
        if self.left == 0:
            raise RefinementOver
        start = self.start
        asked = [
            start.bounds.project(candidate, start.seed) for candidate in candidates[: self.left]
        ]
        self.left -= len(asked)
        return asked

    def keep(
        self, evaluated: EvaluatedInput, better: Callable[[Outcome], bool]
    ) -> QueryGenerator[bool]:
        """Replace the trigger by an input, if the device confirms that it deviates and is better.

        The cause has to stay the same, so every arm that answered about the trigger is queried.

        Args:
            evaluated: an input that deviates.
            better: given all answers, whether the input is better than the trigger.

        Raises:
            RefinementOver: what is kept is enough.

        """
        goal, outcome = self.start.goal, evaluated.outcome
        missing = tuple(arm for arm in self.trigger.outcome.answers if arm not in outcome.answers)
        if missing:
            (answered,) = yield [Query(evaluated.input, missing, again=True)]
            outcome = Outcome({**outcome.answers, **answered.answers}, outcome.members)
        kept = (
            goal.met(outcome) == self._kind
            and cause(outcome, goal.find) == self._cause
            and better(outcome)
        )
        if kept:
            self.trigger = replace(self.trigger, input=evaluated.input, outcome=outcome)
        self._contradicted = 0 if kept else self._contradicted + 1
        if self._contradicted == PATIENCE:
            self._surrogate = self._surrogates[-1]  # the device itself
        if kept and self._enough is not None and self._enough(self.trigger.input):
            raise RefinementOver
        return kept

    def at_trigger(self) -> EvaluatedInput:
        """Return the trigger as an evaluated input."""
        return self._evaluated(self.trigger.input, self.trigger.outcome)

    def at_seed(self) -> EvaluatedInput:
        """Return the seed as an evaluated input."""
        return self._evaluated(self.start.seed, self.start.outcome)

    def _evaluated(self, candidate: Input, outcome: Outcome) -> EvaluatedInput:
        surrogate = self._surrogate
        deviates = self.start.goal.met(surrogate.substitute(outcome)) == self._kind
        return EvaluatedInput(candidate, *surrogate.sides(outcome), outcome, deviates)
