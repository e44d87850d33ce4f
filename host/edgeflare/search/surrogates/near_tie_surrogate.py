"""Near-ties of the twin: where nothing on the host answers as the device may."""

from __future__ import annotations

import numpy as np

from edgeflare.core.answer import Answer
from edgeflare.core.arm import Arm
from edgeflare.core.goal import Goal
from edgeflare.core.outcome import Outcome
from edgeflare.search.surrogates.surrogate import Surrogate, with_device


class NearTieSurrogate(Surrogate):
    """The device may deviate where the two best classes of the twin nearly tie."""

    LEAST = 0.01
    MOST = 0.1
    """Margins between the twin's two largest probabilities at which the device is queried: below, a
    device that differs mostly ties itself; above, none was ever found to differ."""

    UNIT = 1 / 256
    """What 8 bits tell apart. A smaller margin is a float model's, whose device seldom ties."""

    def __init__(self, goal: Goal, arms: tuple[Arm, ...] = (Arm.TWIN,)) -> None:
        super().__init__(goal, arms)

    def substitute(self, outcome: Outcome) -> Outcome:
        """Return the outcome with the twin's answer as the device's."""
        return with_device(outcome, outcome[Arm.TWIN])

    def deviates(self, outcome: Outcome) -> bool:
        """Whether the twin nearly ties, or fails."""
        twin = outcome[Arm.TWIN]
        if twin.failure is not None:
            return True
        margin = twin.lead()
        return not twin.tied and bool(margin < self.UNIT or self.LEAST <= margin <= self.MOST)


class NearTieWithOriginalSurrogate(NearTieSurrogate):
    """The device may deviate where the twin nearly ties and the original prefers its second.

    On an int8 LeNet-5 with built-in kernels, 7 of 100 near-ties are findings where the original's
    score prefers the other decision by 0.03 or more, 2 of 100 where by less, and under 1 of 100
    where it prefers the twin's. So the boundary that is followed is the one between these two.
    """

    def __init__(self, goal: Goal) -> None:
        super().__init__(goal, (Arm.ORIGINAL, Arm.TWIN))

    def sides(self, outcome: Outcome) -> tuple[Answer, Answer]:
        """Return the original's and the twin's answers."""
        return outcome[Arm.ORIGINAL], outcome[Arm.TWIN]

    def deviates(self, outcome: Outcome) -> bool:
        """Whether the twin nearly ties and the original prefers its second, or one fails.

        Without probabilities nobody knows the second.
        """
        original, twin = self.sides(outcome)
        if not super().deviates(outcome):
            return False
        if original.failure is not None or twin.failure is not None:
            return True
        if not len(twin.probabilities):
            return True
        second, first = np.argsort(twin.probabilities)[-2:]
        return bool(original.scores[second] > original.scores[first])
