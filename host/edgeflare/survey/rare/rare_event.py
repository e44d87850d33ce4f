"""A rare event: the device decides otherwise than the original or the twin, and how strongly."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from edgeflare.core.answer import Answer
from edgeflare.core.arm import Arm
from edgeflare.core.outcome import Outcome

_BELOW = -1e-12
"""The level of a foretold event at most, where rounding hides by how much it is one."""


@dataclass(frozen=True, slots=True)
class RareEvent:
    """A strict deviation of the device, stronger than a limit; or the device fails.

    Attributes:
        reference: the arm that the device deviates from: the original, or the twin, where only
            kernels are judged.
        strength: that of the deviation has to be above this, from 0 to 1; 0 counts all that hang on
            no tie. See `Answer.strength_against`.

    """

    reference: Arm
    strength: float = 0.0

    @property
    def host_arms(self) -> tuple[Arm, ...]:
        """The arms that a level is told from."""
        return (Arm.TWIN,) if self.reference is Arm.TWIN else (Arm.ORIGINAL, Arm.TWIN)

    def happened(self, outcome: Outcome) -> bool:
        """Whether the event happened, given what the reference and the device answered."""
        reference, device = outcome[self.reference], outcome[Arm.DEVICE]
        if reference.decision is None or device.decision is None:
            return device.failure is not None
        if not device.differs(reference) or device.differs_by_tie(reference):
            return False
        return (reference.strength_against(device) or 0.0) > self.strength

    def level(self, outcome: Outcome) -> float:
        """Return how far the event is, as the host's arms tell it.

        It is below 0 where the host foretells the event, and infinite where the host knows that
        nothing but a failure of the device could be it. Against the twin it is the twin's margin,
        in scores; against the original, the strength that is missing.
        """
        reference, twin = outcome[self.reference], outcome[Arm.TWIN]
        if reference.tied:
            return inf
        if self.reference is Arm.TWIN:
            return twin.margin(twin) if twin.lead() > self.strength else inf
        if reference.decision is None or twin.decision is None:
            return 0.0
        foretold = (
            twin.differs(reference)
            and not twin.differs_by_tie(reference)
            and (reference.strength_against(twin) or 0.0) > self.strength
        )
        missing = self._missing(reference, twin)
        return min(missing, _BELOW) if foretold else max(missing, 0.0)

    def _missing(self, reference: Answer, twin: Answer) -> float:
        """Return what is missing to the strength, for the decision that most nearly has it.

        Each decision lacks the more of two: what the original, whose answer is certain, prefers its
        own by too little, and what the twin, whom the device resembles, prefers it by too little.
        """
        a = reference.decision or 0
        p, q = reference.probabilities, twin.probabilities
        strengths = np.minimum(p[a] - p, q - q[a])
        strengths[a] = -np.inf
        return self.strength - float(strengths.max())
