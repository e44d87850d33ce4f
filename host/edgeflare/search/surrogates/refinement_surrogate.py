"""Who answers while a trigger is refined: the host in the device's place, or the device itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from edgeflare.core.answer import Answer
from edgeflare.core.arm import Arm
from edgeflare.core.goal import Find, Goal
from edgeflare.core.outcome import Outcome


class RefinementSurrogate(Protocol):
    """Two that answer for the two arms that the goal compares."""

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms to ask."""

    @property
    def kernels(self) -> tuple[str, ...]:
        """The members of the twin's ensemble to ask."""

    def as_compared(self, outcome: Outcome) -> Outcome:
        """Return the outcome with the device's answer, its own or that of its stand-in."""


@dataclass(frozen=True, slots=True)
class DeviceItself:
    """The device answers itself."""

    arms: tuple[Arm, ...]
    kernels: tuple[str, ...] = ()

    def as_compared(self, outcome: Outcome) -> Outcome:
        """Return the outcome as it is."""
        return outcome


@dataclass(frozen=True, slots=True)
class TwinForDevice:
    """The twin stands in for the device: the same file, so compression shows on both."""

    arms: tuple[Arm, ...] = (Arm.ORIGINAL, Arm.TWIN)
    kernels: tuple[str, ...] = ()

    def as_compared(self, outcome: Outcome) -> Outcome:
        """Return the outcome with the twin's answer as the device's."""
        return _with_device(outcome, outcome[Arm.TWIN])


@dataclass(frozen=True, slots=True)
class MemberForDevice:
    """A member of the twin's ensemble stands in for the device: other kernels, as the device's."""

    name: str
    arms: tuple[Arm, ...] = (Arm.TWIN,)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The member."""
        return (self.name,)

    def as_compared(self, outcome: Outcome) -> Outcome:
        """Return the outcome with the member's answer as the device's."""
        return _with_device(outcome, outcome.members[self.name])


def possible_surrogates(goal: Goal, ensemble: tuple[str, ...]) -> tuple[RefinementSurrogate, ...]:
    """Return who could stand in for the device; which of them do is for a trigger to tell."""
    if goal.find is Find.KERNEL:
        return tuple(MemberForDevice(name) for name in ensemble)
    return (TwinForDevice(),)


def answered(witnesses: RefinementSurrogate, outcome: Outcome) -> bool:
    """Whether an outcome holds all that these witnesses say."""
    return set(witnesses.arms) <= set(outcome.answers) and set(witnesses.kernels) <= set(
        outcome.members
    )


def compared(goal: Goal, outcome: Outcome) -> tuple[Answer, Answer]:
    """Return the two answers that the goal compares."""
    first, second = goal.compared
    return outcome[first], outcome[second]


def _with_device(outcome: Outcome, answer: Answer) -> Outcome:
    return Outcome({**outcome.answers, Arm.DEVICE: answer}, outcome.members)
