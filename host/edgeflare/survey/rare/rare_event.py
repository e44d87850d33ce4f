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
    """A deviation of the device, or one that is stronger than a limit; or the device fails.

    Attributes:
        reference: the arm that the device deviates from: the original, or the twin, where only
            kernels are judged.
        strength: that of the deviation has to be above this, from 0 to 1, and then it must not hang
            on a tie; None counts every deviation. See `Answer.strength_against`.

    """

    reference: Arm
    strength: float | None = None

    def happened(self, outcome: Outcome) -> bool:
        """Whether the event happened, given what the reference and the device answered."""
        reference, device = outcome[self.reference], outcome[Arm.DEVICE]
        if reference.decision is None or device.decision is None:
            return device.failure is not None
        return self._counts(reference, device)

    def level(self, outcome: Outcome) -> float:
        """Return how far the event is, as the host's arms tell it, in scores.

        It is below 0 where the twin foretells the event, and infinite where the host knows that
        nothing but a failure of the device could be it. The original's answer is used where there
        is one.
        """
        reference, twin = outcome[self.reference], outcome[Arm.TWIN]
        if reference.tied and self.strength is not None:
            return inf
        if reference.decision is None or twin.decision is None:
            return 0.0
        if len(reference.probabilities) == 0:
            return twin.margin(reference)
        foretold = self._counts(reference, twin)
        missing = self._missing(reference, twin, outcome.answers.get(Arm.ORIGINAL, twin))
        return min(missing, _BELOW) if foretold else max(missing, 0.0)

    def _counts(self, reference: Answer, other: Answer) -> bool:
        """Whether two arms that answered differ by enough."""
        if not other.differs(reference) or self.strength is None:
            return other.differs(reference)
        strong = (reference.strength_against(other) or 0.0) > self.strength
        return strong and not other.differs_by_tie(reference)

    def _missing(self, reference: Answer, twin: Answer, original: Answer) -> float:
        """Return the change of the expected scores that the nearest decision still needs.

        A decision that the reference does not prefer its own to by enough cannot be the event.
        """
        a, least = reference.decision or 0, self.strength or 0.0
        scores = twin.scores
        if original.decision is not None:
            scores = scores + _TOWARDS_ORIGINAL * (original.scores - scores)
        # Of two probabilities that add up to a share, the difference is share · tanh(scores / 2).
        share = np.maximum(twin.probabilities + twin.probabilities[a], _LEAST_SHARE)
        ahead = 2.0 * np.arctanh(np.minimum(least / share, _MOST_CERTAIN))
        missing = scores[a] - scores + ahead
        if self.strength is not None:
            missing[reference.probabilities[a] - reference.probabilities <= least] = inf
        missing[a] = inf
        return float(missing.min())
