"""What the arms answered about one input, together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from edgeflare.core.answer import Answer
from edgeflare.core.arm import Arm


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answers about one input.

    Attributes:
        answers: by arm; an arm that was not asked is absent.
        members: answers of the twin's ensemble, by kernel set.

    """

    answers: Mapping[Arm, Answer]
    members: Mapping[str, Answer] = field(default_factory=dict)

    def __getitem__(self, arm: Arm) -> Answer:
        return self.answers[arm]


def same_decisions(one: Outcome, other: Outcome) -> bool:
    """Whether the same arms answered two times, and none of them decided differently."""
    return one.answers.keys() == other.answers.keys() and not any(
        answer.differs(other[arm]) for arm, answer in one.answers.items()
    )


def answers_by_arm(outcomes: Sequence[Outcome]) -> dict[Arm, list[Answer]]:
    """Return the answers of each arm that answered all of some outcomes, in their order."""
    return {
        arm: [one.answers[arm] for one in outcomes]
        for arm in Arm
        if all(arm in one.answers for one in outcomes)
    }
