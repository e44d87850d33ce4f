"""What counts as a finding: which two arms are compared, and what of their difference counts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from edgeflare.search.outcome import Answer, Arm, Failure, Outcome

Kind = Literal["deviation"] | Failure
Cause = Literal["compression", "kernel", "mixed"]


class Find(str, Enum):
    """Which deviations a campaign looks for."""

    ANY = "any"
    COMPRESSION = "compression"
    KERNEL = "kernel"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Goal:
    """What a search looks for.

    Attributes:
        find: which arms are compared.
        ties: whether a deviation in which a compared arm has a tie counts.
        min_strength: deviations weaker than this do not count.

    """

    find: Find = Find.ANY
    ties: bool = False
    min_strength: float = 0.0

    @property
    def compared(self) -> tuple[Arm, Arm]:
        """The two arms whose labels are compared."""
        if self.find is Find.KERNEL:
            return (Arm.TWIN, Arm.DEVICE)
        return (Arm.ORIGINAL, Arm.DEVICE)

    @property
    def needed(self) -> tuple[Arm, ...]:
        """The arms that have to answer before a deviation can be judged."""
        if self.find is Find.COMPRESSION:
            return (Arm.ORIGINAL, Arm.TWIN, Arm.DEVICE)
        return self.compared

    def met(self, outcome: Outcome) -> Kind | None:
        """Judge an outcome: the kind of finding that it is, or None."""
        first, second = (outcome[arm] for arm in self.compared)
        failure = second.failure or first.failure
        if failure is not None:
            return failure
        if first.label == second.label:
            return None
        if not self.ties and (first.tied or second.tied):
            return None
        if self.find is Find.COMPRESSION and outcome[Arm.TWIN].label != second.label:
            return None
        confidence = strength(first, second)
        if confidence is None or confidence < self.min_strength:
            return None
        return "deviation"

    def tied_deviation(self, outcome: Outcome) -> bool:
        """Whether the compared arms answered, and differ by a tie on one side or both."""
        first, second = (outcome.answers.get(arm) for arm in self.compared)
        return (
            first is not None
            and second is not None
            and first.label is not None
            and second.label is not None
            and first.label != second.label
            and (first.tied or second.tied)
        )


def strength(first: Answer, second: Answer) -> float | None:
    """How confidently two arms disagree: min(p_1[a] - p_1[b], p_2[b] - p_2[a]).

    a and b are their labels. None where an arm failed; 0 where the labels are equal.
    """
    a, b = first.label, second.label
    if a is None or b is None:
        return None
    p, q = first.probabilities, second.probabilities
    return min(float(p[a] - p[b]), float(q[b] - q[a]))


def cause(outcome: Outcome, find: Find = Find.ANY) -> Cause | None:
    """Name the cause of a deviation, from labels alone; a failed arm's None is a label of its own.

    h = g != f: compression. g != h and f equal to one of them: kernel. All three differ, or the
    third arm, the one that `find` does not compare, is tied: mixed. Without an original, g != h is
    kernel all the same. None where nothing deviates, or the twin or the device was not asked.
    """
    original, twin, device = (outcome.answers.get(arm) for arm in Arm)
    if twin is None or device is None:
        return None
    if original is None:
        return "kernel" if twin.label != device.label else None
    third = original if find is Find.KERNEL else twin
    distinct = len({original.label, twin.label, device.label})
    if distinct == 1:
        return None
    if distinct == 3 or third.tied:
        return "mixed"
    return "compression" if twin.label == device.label else "kernel"
