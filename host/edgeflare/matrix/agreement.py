"""Which kernel sets decide alike on the same inputs, and which stands alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edgeflare.core.answer import Answer
from edgeflare.core.goal import Goal
from edgeflare.core.query import Arm, Outcome

FEWEST = 3
"""Kernel sets of which one can stand alone: of two that differ, either is as alone as the other."""


@dataclass(frozen=True, slots=True)
class InputAgreement:
    """What the kernel sets decide on one input.

    Attributes:
        deviating: those on which the arms that are compared deviate.
        alone: the one that differs from all others, where these agree; None where there is none.
        apart: the pairs that decide differently, the earlier one first.

    """

    deviating: tuple[str, ...]
    alone: str | None
    apart: tuple[tuple[str, str], ...]


def agreements(
    outcomes: Mapping[str, Sequence[Outcome]], goals: Sequence[Goal]
) -> list[InputAgreement]:
    """Compare what kernel sets decided on the same inputs.

    Args:
        outcomes: an outcome for each input, by kernel set; with the arms that the goal compares.
        goals: what counts as a deviation, one for each input. Unless it counts ties, two kernel
            sets that differ by a tie agree.

    Returns:
        One for each input.

    """
    by_input = zip(zip(*outcomes.values(), strict=True), goals, strict=True)
    return [
        _agreement(dict(zip(outcomes, answers, strict=True)), goal) for answers, goal in by_input
    ]


def _agreement(outcomes: Mapping[str, Outcome], goal: Goal) -> InputAgreement:
    answers = {name: outcome[Arm.DEVICE] for name, outcome in outcomes.items()}
    names = list(answers)
    apart = tuple(
        (name, other)
        for at, name in enumerate(names)
        for other in names[at + 1 :]
        if _apart(answers[name], answers[other], goal)
    )
    alone = None
    if len(names) >= FEWEST and len(apart) == len(names) - 1:
        alone = next((name for name in names if all(name in pair for pair in apart)), None)
    return InputAgreement(
        deviating=tuple(
            name for name, outcome in outcomes.items() if goal.met(outcome) is not None
        ),
        alone=alone,
        apart=apart,
    )


def _apart(one: Answer, other: Answer, goal: Goal) -> bool:
    if one.failure is not None or other.failure is not None:
        return one.failure != other.failure
    return one.differs(other) and (goal.ties or not one.differs_by_tie(other))
