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

_TOWARDS_ORIGINAL = 0.3
"""How far from the twin's scores towards the original's those of a device are expected. Both round
what the original computes, each in its own way, so where the twin has gone far, the device has
likely gone less far."""

_LEAST_SHARE = 1e-9
_MOST_CERTAIN = 1.0 - 1e-9
"""These keep the scores that a strength needs finite, where it cannot be had."""


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

    def happened(self, outcome: Outcome) -> bool:
        """Whether the event happened, given what the reference and the device answered."""
        reference, device = outcome[self.reference], outcome[Arm.DEVICE]
        if reference.decision is None or device.decision is None:
            return device.failure is not None
        if not device.differs(reference) or device.differs_by_tie(reference):
            return False
        return (reference.strength_against(device) or 0.0) > self.strength

    def level(self, outcome: Outcome) -> float:
        """Return how far the event is, as the host's arms tell it, in scores.

        It is below 0 where the twin foretells the event, and infinite where the host knows that
        nothing but a failure of the device could be it. The original's answer is used where there
        is one.
        """
        reference, twin = outcome[self.reference], outcome[Arm.TWIN]
        if reference.tied:
            return inf
        if reference.decision is None or twin.decision is None:
            return 0.0
        if len(reference.probabilities) == 0:
            return twin.margin(reference)
        foretold = (
            twin.differs(reference)
            and not twin.differs_by_tie(reference)
            and (reference.strength_against(twin) or 0.0) > self.strength
        )
        missing = self._missing(reference, twin, outcome.answers.get(Arm.ORIGINAL, twin))
        return min(missing, _BELOW) if foretold else max(missing, 0.0)

    def _missing(self, reference: Answer, twin: Answer, original: Answer) -> float:
        """Return the change of the expected scores that the nearest decision still needs.

        A decision that the reference does not prefer its own to by enough cannot be the event.
        """
        a = reference.decision or 0
        scores = twin.scores
        if original.decision is not None:
            scores = scores + _TOWARDS_ORIGINAL * (original.scores - scores)
        # Of two probabilities that add up to a share, the difference is share · tanh(scores / 2).
        share = np.maximum(twin.probabilities + twin.probabilities[a], _LEAST_SHARE)
        ahead = 2.0 * np.arctanh(np.minimum(self.strength / share, _MOST_CERTAIN))
        missing = scores[a] - scores + ahead
        missing[reference.probabilities[a] - reference.probabilities <= self.strength] = inf
        return float(missing.min())
