"""The twin as surrogate: the same file as the device's, so it shows what compression changed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from edgeflare.core.arm import Arm
from edgeflare.core.goal import Goal
from edgeflare.core.outcome import Outcome
from edgeflare.search.strategy import Donor
from edgeflare.search.surrogates.near_tie_surrogate import NearTieSurrogate
from edgeflare.search.surrogates.query_backoff import QueryBackoff, answers_are_equal
from edgeflare.search.surrogates.surrogate import Surrogate, with_device


class TwinSurrogate(Surrogate):
    """The twin answers for the device."""

    def __init__(self, goal: Goal, kernels: tuple[str, ...] = ()) -> None:
        super().__init__(goal, (Arm.ORIGINAL, Arm.TWIN), kernels)

    def substitute(self, outcome: Outcome) -> Outcome:
        """Return the outcome with the twin's answer as the device's."""
        return with_device(outcome, outcome[Arm.TWIN])


class UnanimousTwinSurrogate(TwinSurrogate):
    """The twin answers for the device where all members of its ensemble give its decision.

    What compression changed counts only if the device decides as its twin. A device whose kernels
    round otherwise than the twin's confirms about half of what the twin shows by one unit of its
    outputs (a ResNet-20 on built-in kernels), and most of it where other kernels of the host give
    the same decision.
    """

    MOST_PASSED_OVER = 8
    """Deviations in a row that may be passed over, since no member need resemble the device."""

    def __init__(self, goal: Goal, kernels: tuple[str, ...]) -> None:
        super().__init__(goal, kernels)
        self._passed_over = 0

    def decide(self, outcome: Outcome) -> bool:
        """Decide to query where twin and members deviate alike, or many others were passed over."""
        if not self.deviates(outcome):
            return False
        twin = outcome[Arm.TWIN]
        members = [outcome.members[name] for name in self.kernels]
        unanimous = not any(one.differs(twin) or one.tied for one in members)
        if not unanimous and self._passed_over < self.MOST_PASSED_OVER:
            self._passed_over += 1
            return False
        self._passed_over = 0
        return True


class TwinThenNearTieSurrogate(TwinSurrogate):
    """The twin answers for the device; in a long search the device is queried at near-ties too.

    The twin does not show deviations that the device's kernels alone cause. So after a number of
    queries the device is also queried where the twin's two best classes nearly tie, the more often
    the more it differs from its twin (`QueryBackoff`).
    """

    MIN_QUERIES = 100
    """Queries before near-ties count: 2 to 6 of 100 searches for what compression changed take more
    on int8 LeNets, and near-ties of a device that differs are findings in a few of 100."""

    MIN_QUERIES_IF_EQUAL = 250
    """The same where the device answered every seed just as its twin did: 1 of 1,000 searches."""

    def __init__(self, goal: Goal, donors: Sequence[Donor] = ()) -> None:
        super().__init__(goal)
        self._near_ties = NearTieSurrogate(goal)
        self._donors = donors
        self._backoff = QueryBackoff()
        self._queries = 0

    def decide(self, outcome: Outcome) -> bool:
        """Decide to query where the twin deviates, and in a long search where it nearly ties."""
        self._queries += 1
        if self.deviates(outcome):
            return True
        return self._is_long() and self._nearly_ties(outcome) and self._backoff.take()

    def update(self, outcome: Outcome) -> None:
        """Update how often near-ties are queried by whether the device differs from its twin."""
        self._backoff.update(outcome)

    def _is_long(self) -> bool:
        if self._queries <= self.MIN_QUERIES:
            return False
        return self._device_differs or self._queries > self.MIN_QUERIES_IF_EQUAL

    def _nearly_ties(self, outcome: Outcome) -> bool:
        """Whether the twin nearly ties, and a device on the other side would be a finding."""
        original, twin = self.sides(outcome)
        if original.failure is not None or not self._near_ties.deviates(outcome):
            return False
        if not len(twin.probabilities):
            return True
        second, first = np.argsort(twin.probabilities)[-2:]
        margin = original.probabilities[first] - original.probabilities[second]
        return bool(margin > 0.0 and margin >= self._goal.min_strength)

    @cached_property
    def _device_differs(self) -> bool:
        """Whether the device is known to answer otherwise than its twin on some seed."""
        return not all(answers_are_equal(one.outcome) for one in self._donors)
