"""Who stands in for the device, and when the device itself is asked.

Host queries are cheap and device queries are not. So a search looks at an input on the host first,
on two arms of which the second stands in for the device, and asks the device where they disagree
as the goal wants the compared arms to disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from edgeflare.search.goal import Find, Goal
from edgeflare.search.outcome import Answer, Arm, Outcome


class Surrogate(Protocol):
    """Two arms of the host in place of the two that the goal compares."""

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The host's arms to ask."""

    @property
    def kernels(self) -> tuple[str, ...]:
        """The members of the twin's ensemble to ask."""

    def sides(self, outcome: Outcome) -> tuple[Answer, Answer]:
        """Return the two answers whose boundaries are followed."""

    def doubts(self, outcome: Outcome) -> bool:
        """Whether the device should be asked about this input."""

    def confirmed(self, *, kept: bool) -> None:
        """Hear whether what was doubted was a finding on the device."""


def surrogate(goal: Goal, ensemble: tuple[str, ...], seed: Outcome) -> Surrogate:
    """Return what stands in for the device.

    Args:
        goal: what is looked for.
        ensemble: kernel sets of the twin beside its own.
        seed: the seed's outcome, which tells whether there is an original.

    """
    if goal.find is not Find.KERNEL:
        return TwinForDevice(goal)
    witness = Arm.ORIGINAL in seed.answers
    near_ties = WitnessedNearTies(goal) if witness else NearTies(goal)
    return EnsembleForDevice(goal, ensemble, near_ties, witness=witness) if ensemble else near_ties


@dataclass(frozen=True, slots=True)
class TwinForDevice:
    """The twin stands in for the device: the same file, so compression shows on both."""

    goal: Goal
    arms: tuple[Arm, ...] = (Arm.ORIGINAL, Arm.TWIN)
    kernels: tuple[str, ...] = ()

    def sides(self, outcome: Outcome) -> tuple[Answer, Answer]:
        """Return the original's and the twin's answers."""
        return outcome[Arm.ORIGINAL], outcome[Arm.TWIN]

    def doubts(self, outcome: Outcome) -> bool:
        """Ask the device where the twin deviates from the original."""
        twin = outcome[Arm.TWIN]
        return self.goal.met(Outcome({**outcome.answers, Arm.DEVICE: twin})) is not None

    def confirmed(self, *, kept: bool) -> None:
        """Learn nothing."""


class EnsembleForDevice:
    """Members of the twin's ensemble stand in for the device: where they disagree, it may too.

    All kernel sets round one and the same model, so the original is a witness: where it sides with
    the twin, the device sides with the member in 0.23 of the disagreements, elsewhere in 0.52 (a
    ResNet-20 on built-in kernels). And an ensemble that does not resemble the
    device is found out by the device: once it has been wrong often enough, near-ties of the twin
    are asked about as well.
    """

    WITNESS_MARGIN = 0.02
    """Score by which the original has to prefer the member's label to the twin's."""

    MOST_PASSED_OVER = 4
    """Disagreements in a row that may be passed over because the original sides with the twin."""

    PATIENCE = 8
    """Disagreements in a row that the device did not share, before near-ties count too."""

    def __init__(
        self, goal: Goal, kernels: tuple[str, ...], near_ties: Surrogate, *, witness: bool
    ) -> None:
        self.arms: tuple[Arm, ...] = (Arm.ORIGINAL, Arm.TWIN) if witness else (Arm.TWIN,)
        self.kernels = kernels
        self._goal = goal
        self._near_ties = near_ties
        self._passed_over = 0
        self._wrong = 0

    def sides(self, outcome: Outcome) -> tuple[Answer, Answer]:
        """Return the twin's answer, and that of the first member that disagrees with it."""
        twin = outcome[Arm.TWIN]
        others = [outcome.members[name] for name in self.kernels]
        return twin, next((one for one in others if one.label != twin.label), others[0])

    def doubts(self, outcome: Outcome) -> bool:
        """Ask the device where a member deviates from the twin, or where little else is left."""
        twin, other = self.sides(outcome)
        if self._goal.met(Outcome({Arm.TWIN: twin, Arm.DEVICE: other})) is None:
            return self._wrong >= self.PATIENCE and self._near_ties.doubts(outcome)
        if self._sides_with(outcome, twin, other) or self._passed_over >= self.MOST_PASSED_OVER:
            self._passed_over = 0
            return True
        self._passed_over += 1
        return False

    def confirmed(self, *, kept: bool) -> None:
        """Count how often in a row the ensemble was wrong."""
        self._wrong = 0 if kept else self._wrong + 1

    def _sides_with(self, outcome: Outcome, twin: Answer, other: Answer) -> bool:
        """Whether the original speaks for the member, or there is no original to speak."""
        witness = outcome.answers.get(Arm.ORIGINAL)
        if witness is None or None in (witness.label, twin.label, other.label):
            return True
        return bool(witness.scores[other.label] - witness.scores[twin.label] >= self.WITNESS_MARGIN)


@dataclass(frozen=True, slots=True)
class NearTies:
    """Nothing stands in for the device: it is asked where the twin all but ties."""

    goal: Goal
    arms: tuple[Arm, ...] = (Arm.TWIN,)
    kernels: tuple[str, ...] = ()

    LEAST = 0.01
    MOST = 0.1
    """Margins between the twin's two largest probabilities at which the device is asked: below, a
    device that differs mostly ties itself; above, none was ever found to differ."""

    def sides(self, outcome: Outcome) -> tuple[Answer, Answer]:
        """Return the twin's answer twice."""
        return outcome[Arm.TWIN], outcome[Arm.TWIN]

    def doubts(self, outcome: Outcome) -> bool:
        """Ask the device where the twin all but ties."""
        twin = outcome[Arm.TWIN]
        if twin.failure is not None:
            return True
        second, first = np.sort(twin.probabilities)[-2:]
        return not twin.tied and bool(self.LEAST <= first - second <= self.MOST)

    def confirmed(self, *, kept: bool) -> None:
        """Learn nothing."""


@dataclass(frozen=True, slots=True)
class WitnessedNearTies(NearTies):
    """The original as witness: the device is asked where the twin all but ties on its wrong side.

    On an int8 LeNet-5 with built-in kernels, 7 of 100 near-ties are findings where the original's
    score prefers the other label by 0.03 or more, 2 of 100 where by less, and under 1 of 100 where
    it sides with the twin. So the boundary that is followed is the one between these two.
    """

    arms: tuple[Arm, ...] = (Arm.ORIGINAL, Arm.TWIN)

    def sides(self, outcome: Outcome) -> tuple[Answer, Answer]:
        """Return the original's and the twin's answers."""
        return outcome[Arm.ORIGINAL], outcome[Arm.TWIN]

    def doubts(self, outcome: Outcome) -> bool:
        """Ask the device where the twin all but ties and the original is on the other side."""
        witness, twin = outcome[Arm.ORIGINAL], outcome[Arm.TWIN]
        if not NearTies.doubts(self, outcome):
            return False
        if witness.failure is not None or twin.failure is not None:
            return True
        second, first = np.argsort(twin.probabilities)[-2:]
        return bool(witness.scores[second] > witness.scores[first])
