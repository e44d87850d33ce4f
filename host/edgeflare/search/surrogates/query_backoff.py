"""Exponential back-off of device queries while the device answers as its twin does."""

from __future__ import annotations

from edgeflare.core.arm import Arm
from edgeflare.core.outcome import Outcome


class QueryBackoff:
    """Passes over ever more inputs while the device answers just as its twin does.

    Each answer that equals the twin's doubles the number of inputs that are passed over before the
    device is queried again, and one that differs resets it to none.
    """

    MOST_PASSED_OVER = 31
    """Inputs in a row that are passed over at most: a fault of the device may be a rare one."""

    def __init__(self) -> None:
        self._to_pass_over = 0
        self._passed_over = 0

    def take(self) -> bool:
        """Count one input at which the device may deviate; return whether to query it there."""
        if self._passed_over < self._to_pass_over:
            self._passed_over += 1
            return False
        self._passed_over = 0
        return True

    def update(self, outcome: Outcome) -> None:
        """Update the number that is passed over with the device's answer."""
        more = min(2 * self._to_pass_over + 1, self.MOST_PASSED_OVER)
        self._to_pass_over = more if answers_are_equal(outcome) else 0


def answers_are_equal(outcome: Outcome) -> bool:
    """Whether device and twin answered the same, to the bit; True where one did not answer."""
    twin, device = (outcome.answers.get(arm) for arm in (Arm.TWIN, Arm.DEVICE))
    if twin is None or device is None:
        return True
    return twin.equals(device)
