"""What strengthening and shrinking share: looking within a budget, and keeping what is better.

The host looks first wherever it shows the deviation too; the device is asked about what would be
kept. Where the host does not show it, or was wrong about the device several times in a row, the
device is asked about every input.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from edgeflare.core.answer import Answer, Image
from edgeflare.core.cause import cause
from edgeflare.core.outcome import Outcome
from edgeflare.core.query import Query
from edgeflare.core.trigger import Trigger
from edgeflare.search.strategy import Start
from edgeflare.search.surrogates.surrogate_choice import refinement_surrogates

PATIENCE = 4
"""Times in a row that the device may contradict the host before the host is no longer heard."""

T = TypeVar("T")
Part = Generator[Sequence[Query], Sequence[Outcome], T]
"""A part of a story, and what it comes to."""


class BudgetSpentError(Exception):
    """Nothing more may be asked; whoever tells the story returns the best trigger so far."""


@dataclass(frozen=True, slots=True)
class EvaluatedInput:
    """An input that was looked at.

    Attributes:
        image: HWC uint8.
        first: the first compared arm's answer, or that of its stand-in on the host.
        second: the second's.
        outcome: all that was answered.
        deviates: whether it is a finding, as far as those who answered can tell.

    """

    image: Image
    first: Answer
    second: Answer
    outcome: Outcome
    deviates: bool


class TriggerRefinement:
    """The refinement of one trigger: what is kept so far, and what may still be asked."""

    def __init__(self, trigger: Trigger, start: Start, budget: int) -> None:
        """Begin; the first stand-in that shows the trigger to deviate answers, if one does.

        Args:
            trigger: what is refined; who is missing in its outcome does not stand in.
            start: its seed, what counts, and the generator.
            budget: how many inputs may be looked at.

        """
        self.trigger = trigger
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

    def look(self, images: Sequence[Image]) -> Part[list[EvaluatedInput]]:
        """Look at inputs, brought within the bounds first; only as many as are left.

        Raises:
            BudgetSpentError: none is left.

        """
        if self.left == 0:
            raise BudgetSpentError
        start, surrogate = self.start, self._surrogate
        asked = [start.bounds.project(image, start.image) for image in images[: self.left]]
        self.left -= len(asked)
        outcomes = yield [Query(image, surrogate.arms, surrogate.kernels) for image in asked]
        return [self._seen(*pair) for pair in zip(asked, outcomes, strict=True)]

    def keep(self, seen: EvaluatedInput, better: Callable[[Outcome], bool]) -> Part[bool]:
        """Make an input the trigger, if the device says too that it is one, and a better one.

        The cause stays what it was, so every arm that answered about the trigger is asked.

        Args:
            seen: an input that deviates.
            better: told all arms' answers, whether the input is better than the trigger.

        """
        goal, outcome = self.start.goal, seen.outcome
        missing = tuple(arm for arm in self.trigger.outcome.answers if arm not in outcome.answers)
        if missing:
            (told,) = yield [Query(seen.image, missing, again=True)]
            outcome = Outcome({**outcome.answers, **told.answers}, outcome.members)
        kept = (
            goal.met(outcome) == self._kind
            and cause(outcome, goal.find) == self._cause
            and better(outcome)
        )
        if kept:
            self.trigger = replace(self.trigger, image=seen.image, outcome=outcome)
        self._contradicted = 0 if kept else self._contradicted + 1
        if self._contradicted == PATIENCE:
            self._surrogate = self._surrogates[-1]  # the device itself
        return kept

    def at_trigger(self) -> EvaluatedInput:
        """Return what is known of the trigger."""
        return self._seen(self.trigger.image, self.trigger.outcome)

    def at_seed(self) -> EvaluatedInput:
        """Return what is known of the seed."""
        return self._seen(self.start.image, self.start.outcome)

    def _seen(self, image: Image, outcome: Outcome) -> EvaluatedInput:
        surrogate = self._surrogate
        deviates = self.start.goal.met(surrogate.substitute(outcome)) == self._kind
        return EvaluatedInput(image, *surrogate.sides(outcome), outcome, deviates)
