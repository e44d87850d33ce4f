"""Who stands in for the device, and when the device itself is asked.

Host queries are cheap and device queries are not. So a search looks at an input on the host first,
on two arms of which the second stands in for the device, and asks the device where they disagree
as the goal wants the compared arms to disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from edgeflare.core.answer import Answer
from edgeflare.core.arm import Arm
from edgeflare.core.goal import Find, Goal
from edgeflare.core.outcome import Outcome
from edgeflare.search.strategy import Donor


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

    def told(self, outcome: Outcome) -> None:
        """Hear what the device answered too, where it was asked."""


def surrogate(
    goal: Goal, ensemble: tuple[str, ...], seed: Outcome, others: Sequence[Donor] = ()
) -> Surrogate:
    """Return what stands in for the device.

    Args:
        goal: what is looked for.
        ensemble: kernel sets of the twin beside its own.
        seed: the seed's outcome, which tells whether there is an original.
        others: seeds of the campaign, whose outcomes tell whether the device is like its twin.

    """
    if goal.find is Find.COMPRESSION:
        return UnanimousTwin(goal, ensemble)
    if goal.find is Find.ANY:
        return TwinThenNearTies(goal, others)
    witness = Arm.ORIGINAL in seed.answers
    near_ties = NearTiesAgainstOriginal(goal) if witness else NearTies(goal)
    return EnsembleForDevice(goal, ensemble, near_ties, witness=witness) if ensemble else near_ties


class TwinForDevice:
    """The twin stands in for the device: the same file, so compression shows on both."""

    arms: tuple[Arm, ...] = (Arm.ORIGINAL, Arm.TWIN)

    def __init__(self, goal: Goal) -> None:
        self.kernels: tuple[str, ...] = ()
        self._goal = goal

    def sides(self, outcome: Outcome) -> tuple[Answer, Answer]:
        """Return the original's and the twin's answers."""
        return outcome[Arm.ORIGINAL], outcome[Arm.TWIN]

    def doubts(self, outcome: Outcome) -> bool:
        """Ask the device where the twin deviates from the original."""
        twin = outcome[Arm.TWIN]
        return self._goal.met(Outcome({**outcome.answers, Arm.DEVICE: twin})) is not None

    def told(self, outcome: Outcome) -> None:
        """Learn nothing."""


class UnanimousTwin(TwinForDevice):
    """The twin stands in for the device where all members of its ensemble say what it says.

    What compression changed counts only if the device does as its twin. Kernels that round
    otherwise than the twin's confirm about half of what it shows by one unit of its outputs (a
    ResNet-20 on built-in kernels); where other kernels of the host say the same, they mostly do.
    """

    MOST_PASSED_OVER = 8
    """Deviations in a row that may be passed over, since no member need resemble the device."""

    def __init__(self, goal: Goal, kernels: tuple[str, ...]) -> None:
        super().__init__(goal)
        self.kernels = kernels
        self._passed_over = 0

    def doubts(self, outcome: Outcome) -> bool:
        """Ask the device where twin and members deviate alike, or where few such places are."""
        if not super().doubts(outcome):
            return False
        label = outcome[Arm.TWIN].label
        members = [outcome.members[name] for name in self.kernels]
        unanimous = all(one.label == label and not one.tied for one in members)
        if not unanimous and self._passed_over < self.MOST_PASSED_OVER:
            self._passed_over += 1
            return False
        self._passed_over = 0
        return True


class TwinThenNearTies(TwinForDevice):
    """The twin stands in for the device, but not for ever: its kernels alone may deviate.

    Such deviations the twin does not show. So once a search has lasted, the device is also asked
    where the twin all but ties, the more often the more it differs from its twin (`QueryBackoff`).
    """

    LASTED = 100
    """Looks before near-ties count: 2 to 6 of 100 searches for what compression changed take more
    on int8 LeNets, and near-ties of a device that differs are findings in a few of 100."""

    LASTED_ALIKE = 250
    """The same where the device answered every seed just as its twin did: 1 of 1,000 searches."""

    def __init__(self, goal: Goal, others: Sequence[Donor] = ()) -> None:
        super().__init__(goal)
        self._near_ties = NearTies(goal)
        self._others = others
        self._thrift = QueryBackoff()
        self._looks = 0

    def doubts(self, outcome: Outcome) -> bool:
        """Ask the device where the twin deviates, and after a while where it all but ties."""
        self._looks += 1
        if super().doubts(outcome):
            return True
        return self._has_lasted() and self._nearly_ties(outcome) and self._thrift.grants()

    def told(self, outcome: Outcome) -> None:
        """Go by whether the device differs from its twin at all."""
        self._thrift.told(outcome)

    def _has_lasted(self) -> bool:
        if self._looks <= self.LASTED:
            return False
        return self._differs or self._looks > self.LASTED_ALIKE

    def _nearly_ties(self, outcome: Outcome) -> bool:
        """Whether the twin all but ties, and a device on the other side would be a finding."""
        original, twin = self.sides(outcome)
        if original.failure is not None or not self._near_ties.doubts(outcome):
            return False
        second, first = np.argsort(twin.probabilities)[-2:]
        margin = original.probabilities[first] - original.probabilities[second]
        return bool(margin > 0.0 and margin >= self._goal.min_strength)

    @cached_property
    def _differs(self) -> bool:
        """Whether the device is known to be another than its twin."""
        return not all(_alike(one.outcome) for one in self._others)


class EnsembleForDevice:
    """Members of the twin's ensemble stand in for the device: where they disagree, it may too.

    All kernel sets round one and the same model, so the original is a witness: where it sides with
    the twin, the device sides with the member in 0.23 of the disagreements, elsewhere in 0.52 (a
    ResNet-20 on built-in kernels). An ensemble that does not resemble the device is found out by
    the device: once it has been wrong often enough, near-ties of the twin are asked about as well.
    So they are once it has foretold nothing for long.
    """

    WITNESS_MARGIN = 0.02
    """Score by which the original has to prefer the member's label to the twin's."""

    MOST_PASSED_OVER = 8
    """Disagreements in a row that may be passed over because the original sides with the twin.
    With 4 the ResNet-20 took 2.38 device queries and 351 queries for a finding, with 8 it takes
    1.93 and 366 (60 seeds, each with a finding)."""

    PATIENCE = 8
    """Disagreements in a row that the device did not share, before near-ties count too."""

    SILENCE = 1000
    """Looks in a row without a disagreement, before near-ties count too."""

    def __init__(
        self, goal: Goal, kernels: tuple[str, ...], near_ties: Surrogate, *, witness: bool
    ) -> None:
        self.arms: tuple[Arm, ...] = (Arm.ORIGINAL, Arm.TWIN) if witness else (Arm.TWIN,)
        self.kernels = kernels
        self._goal = goal
        self._near_ties = near_ties
        self._thrift = QueryBackoff()
        self._passed_over = 0
        self._wrong = 0
        self._silent = 0

    def sides(self, outcome: Outcome) -> tuple[Answer, Answer]:
        """Return the original's and the twin's answers, or twin's and member's without an original.

        The kernels part where the twin nearly ties, and so near the original's boundary. That is
        the one to follow: its margin is smooth, where a twin of 8 bits has steps.
        """
        if Arm.ORIGINAL in outcome.answers:
            return outcome[Arm.ORIGINAL], outcome[Arm.TWIN]
        return outcome[Arm.TWIN], self._dissenter(outcome)

    def doubts(self, outcome: Outcome) -> bool:
        """Ask the device where a member deviates from the twin, or where little else is left."""
        twin, other = outcome[Arm.TWIN], self._dissenter(outcome)
        if self._goal.met(Outcome({Arm.TWIN: twin, Arm.DEVICE: other})) is None:
            self._silent += 1
            useless = self._wrong >= self.PATIENCE or self._silent >= self.SILENCE
            return useless and self._near_ties.doubts(outcome) and self._thrift.grants()
        self._silent = 0
        if self._sides_with(outcome, twin, other) or self._passed_over >= self.MOST_PASSED_OVER:
            self._passed_over = 0
            return True
        self._passed_over += 1
        return False

    def _dissenter(self, outcome: Outcome) -> Answer:
        """Return the answer of the first member that disagrees with the twin, or of the first."""
        others = [outcome.members[name] for name in self.kernels]
        twin = outcome[Arm.TWIN]
        return next((one for one in others if one.label != twin.label), others[0])

    def told(self, outcome: Outcome) -> None:
        """Count how often in a row the ensemble was wrong."""
        self._thrift.told(outcome)
        self._wrong = 0 if self._goal.met(outcome) is not None else self._wrong + 1

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

    UNIT = 1 / 256
    """What 8 bits tell apart. A smaller margin is a float model's, whose device seldom ties."""

    def sides(self, outcome: Outcome) -> tuple[Answer, Answer]:
        """Return the twin's answer twice."""
        return outcome[Arm.TWIN], outcome[Arm.TWIN]

    def doubts(self, outcome: Outcome) -> bool:
        """Ask the device where the twin all but ties."""
        twin = outcome[Arm.TWIN]
        if twin.failure is not None:
            return True
        second, first = np.sort(twin.probabilities)[-2:]
        margin = first - second
        return not twin.tied and bool(margin < self.UNIT or self.LEAST <= margin <= self.MOST)

    def told(self, outcome: Outcome) -> None:
        """Learn nothing."""


@dataclass(frozen=True, slots=True)
class NearTiesAgainstOriginal(NearTies):
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


class QueryBackoff:
    """Passes over doubts while the device answers just as its twin does.

    Each answer that equals the twin's doubles the number of doubts that are passed over before the
    device is asked again, and one that differs sets it back to none.
    """

    MOST_PASSED_OVER = 31
    """Doubts in a row that are passed over at most: a fault of the device may be a rare one."""

    def __init__(self) -> None:
        self._to_pass_over = 0
        self._passed_over = 0

    def grants(self) -> bool:
        """Whether the device is to be asked where there is a doubt."""
        if self._passed_over < self._to_pass_over:
            self._passed_over += 1
            return False
        self._passed_over = 0
        return True

    def told(self, outcome: Outcome) -> None:
        """Hear what the device answered."""
        more = min(2 * self._to_pass_over + 1, self.MOST_PASSED_OVER)
        self._to_pass_over = more if _alike(outcome) else 0


def _alike(outcome: Outcome) -> bool:
    """Whether device and twin answered the same, to the bit; so it is taken where one is silent."""
    twin, device = (outcome.answers.get(arm) for arm in (Arm.TWIN, Arm.DEVICE))
    if twin is None or device is None:
        return True
    same = np.array_equal(twin.probabilities, device.probabilities)
    return same and twin.failure == device.failure
