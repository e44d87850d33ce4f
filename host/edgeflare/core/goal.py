"""What counts as a finding: which arms are compared, and what of their difference; and triggers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Annotated, Final, Literal

from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm, Outcome
from edgeflare.record.request import Option

Cause = Literal["compression", "kernel", "mixed"]

Kind = str
"""Why an arm failed, see `Failure`; or how two arms deviate, see `Answer.kind_against`."""


class Find(str, Enum):
    """Which deviations a campaign looks for."""

    ANY = "any"
    COMPRESSION = "compression"
    KERNEL = "kernel"

    __hash__ = str.__hash__  # that of an Enum is a function in Python

    def __str__(self) -> str:
        return self.value


_COMPARED: Final[Mapping[Find, tuple[Arm, Arm]]] = {
    Find.ANY: (Arm.ORIGINAL, Arm.DEVICE),
    Find.COMPRESSION: (Arm.ORIGINAL, Arm.DEVICE),
    Find.KERNEL: (Arm.TWIN, Arm.DEVICE),
}


def _counted_ties(ties: bool) -> str:
    return "include" if ties else "exclude"


@dataclass(frozen=True, slots=True)
class Goal:
    """What a search looks for.

    Attributes:
        find: arms that are compared.
        ties: whether a deviation in which a compared arm has a tie counts; of mutants alone, see
            `unmutated`.
        min_strength: deviations weaker than this do not count.

    """

    find: Find = Find.ANY
    ties: Annotated[bool, Option("--ties", _counted_ties)] = False
    min_strength: int | float = 0.0

    @property
    def compared(self) -> tuple[Arm, Arm]:
        """The two arms whose decisions are compared."""
        return _COMPARED[self.find]

    @property
    def needed(self) -> tuple[Arm, ...]:
        """The arms that have to answer before a deviation can be judged."""
        if self.find is Find.COMPRESSION:
            return (Arm.ORIGINAL, Arm.TWIN, Arm.DEVICE)
        return self.compared

    @property
    def unmutated(self) -> Goal:
        """The goal on inputs as they come: every changed decision counts, by a tie or not."""
        return replace(self, ties=True, min_strength=0.0)

    def met(self, outcome: Outcome) -> Kind | None:
        """Judge an outcome: the kind of finding that it is, or None."""
        one, other = self.compared
        first, second = outcome.answers[one], outcome.answers[other]
        failure = second.failure or first.failure
        if failure is not None:
            return failure
        if not first.differs(second):
            return None
        if not self.ties and first.differs_by_tie(second):
            return None
        if self.find is Find.COMPRESSION and outcome[Arm.TWIN].differs(second):
            return None
        confidence = first.strength_against(second)
        if confidence is None or confidence < self.min_strength:
            return None
        return first.kind_against(second)

    def strength(self, outcome: Outcome) -> float | None:
        """Return how confidently the compared arms differ; None where one failed."""
        first, second = (outcome[arm] for arm in self.compared)
        return first.strength_against(second)

    def tied_deviation(self, outcome: Outcome) -> bool:
        """Whether the compared arms answered, and differ by a tie on one side or both."""
        one, other = self.compared
        first, second = outcome.answers.get(one), outcome.answers.get(other)
        return (
            first is not None
            and second is not None
            and first.failure is None
            and second.failure is None
            and first.differs(second)
            and first.differs_by_tie(second)
        )


def cause(outcome: Outcome, find: Find = Find.ANY) -> Cause | None:
    """Name the cause of a deviation, from decisions alone; that an arm failed is one of its own.

    h = g != f: compression. g != h and f equal to one of them: kernel. All three differ, or the
    third arm, the one that `find` does not compare, is tied: mixed. Without an original, g != h is
    kernel all the same. None where nothing deviates, or the twin or the device was not asked.
    """
    original, twin, device = (outcome.answers.get(arm) for arm in Arm)
    if twin is None or device is None:
        return None
    if original is None:
        return "kernel" if twin.differs(device) else None
    third = original if find is Find.KERNEL else twin
    by_compression, by_kernels = original.differs(twin), twin.differs(device)
    if not (by_compression or by_kernels or original.differs(device)):
        return None
    if (by_compression and by_kernels and original.differs(device)) or third.tied:
        return "mixed"
    return "kernel" if by_kernels else "compression"


@dataclass(frozen=True, slots=True)
class Trigger:
    """A triggering input, and how the search came to it.

    Attributes:
        input: the triggering input.
        kind: what makes it a finding.
        outcome: what the arms answered.
        operators: names of the mutation operators that lead from the seed to it, in order.

    """

    input: Input
    kind: Kind
    outcome: Outcome
    operators: tuple[str, ...]
