"""The surrogate: answers on the host in the place of the device's.

Host queries are cheap and device queries are not. So a search and the refinement of what it found
query the host first, on two answers of which the second stands for the device's, and query the
device where these two disagree as the goal wants the compared arms to disagree. A white-box search
has the translations of original and twin foretell a deviation, which the arms confirm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from edgeflare.core.answer import Answer
from edgeflare.core.goal import Goal, Trigger
from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm, Outcome, Query, TranslatedOutcome, TranslatedQuery
from edgeflare.strategies.strategy import SearchGenerator, Start, WhiteboxGenerator


class Surrogate(ABC):
    """Answers on the host in the place of the two answers that the goal compares.

    A search calls `decide` once for each outcome, in their order, and `update` with the device's
    answer wherever `decide` returned True. The other methods change nothing.

    Attributes:
        arms: the arms to query.
        kernels: the members of the twin's ensemble to query.

    """

    arms: tuple[Arm, ...]
    kernels: tuple[str, ...]

    def __init__(self, goal: Goal, arms: tuple[Arm, ...], kernels: tuple[str, ...] = ()) -> None:
        self.arms = arms
        self.kernels = kernels
        self._goal = goal

    @abstractmethod
    def substitute(self, outcome: Outcome) -> Outcome:
        """Return the outcome with the surrogate's answer as the device's."""

    def sides(self, outcome: Outcome) -> tuple[Answer, Answer]:
        """Return the two answers whose decision boundaries are followed."""
        return compared(self._goal, self.substitute(outcome))

    def deviates(self, outcome: Outcome) -> bool:
        """Whether it is a finding if the device answers as the surrogate does."""
        return self._goal.met(self.substitute(outcome)) is not None

    def decide(self, outcome: Outcome) -> bool:
        """Decide whether to query the device about an input, and count the decision."""
        return self.deviates(outcome)

    def is_vague(self, outcome: Outcome) -> bool:  # noqa: ARG002 - most foretell the device
        """Whether an outcome says that the device may decide otherwise somewhere near the input.

        Then it is worth queries on the host to find out where, before the device is queried.
        """
        return False

    def update(self, outcome: Outcome) -> None:  # noqa: B027 - most learn nothing
        """Update the surrogate with an outcome that holds the device's answer."""

    def is_answered_by(self, outcome: Outcome) -> bool:
        """Whether an outcome holds all answers of the arms and members to query."""
        return set(self.arms) <= set(outcome.answers) and set(self.kernels) <= set(outcome.members)


class NoSurrogate(Surrogate):
    """The device answers itself."""

    def substitute(self, outcome: Outcome) -> Outcome:
        """Return the outcome as it is."""
        return outcome


def compared(goal: Goal, outcome: Outcome) -> tuple[Answer, Answer]:
    """Return the two answers that the goal compares."""
    first, second = goal.compared
    return outcome[first], outcome[second]


def with_device(outcome: Outcome, answer: Answer) -> Outcome:
    """Return the outcome with this answer as the device's."""
    return Outcome({**outcome.answers, Arm.DEVICE: answer}, outcome.members)


def translated(
    input_: Input, coverage: float | None = None
) -> WhiteboxGenerator[TranslatedOutcome]:
    """Return what the translations answer about one input; see `TranslatedQuery`."""
    (told,) = yield TranslatedQuery([input_], coverage)
    answer: TranslatedOutcome = told
    return answer


def confirmed(
    start: Start, input_: Input, told: TranslatedOutcome, operator: str
) -> SearchGenerator:
    """Ask the arms about an input on which the translations deviate as the goal wants.

    Args:
        start: what the search began with.
        input_: the input.
        told: what the translations answer about it; the twin's stands for the device.
        operator: what the trigger says that it was made by.

    Returns:
        The trigger; None where nothing is foretold, and then nobody is asked, or where the arms
        contradict it.

    """
    if start.goal.met(with_device(told.outcome, told.outcome[Arm.TWIN])) is None:
        return None
    (outcome,) = yield [Query(input_, start.goal.needed)]
    kind = start.goal.met(outcome)
    return None if kind is None else Trigger(input_, kind, outcome, (operator,))
