"""The surrogates of a goal: that of a search, and those that refinement chooses from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from edgeflare.core.answer import Answer
from edgeflare.core.goal import Find, Goal
from edgeflare.core.query import Arm, Outcome
from edgeflare.strategies.strategy import Donor
from edgeflare.strategies.surrogate import NoSurrogate, Surrogate, with_device


def search_surrogate(
    goal: Goal,
    ensemble: tuple[str, ...],
    seed: Outcome,
    donors: Sequence[Donor] = (),
    *,
    host_predicts: bool = True,
) -> Surrogate:
    """Return the surrogate of a search.

    Args:
        goal: what is looked for.
        ensemble: kernel sets of the twin beside its own.
        seed: the seed's outcome, which tells whether there is an original.
        donors: seeds of the campaign, whose outcomes tell whether the device is like its twin.
        host_predicts: whether models of the host may answer in the device's place; else it answers
            itself.

    """
    if not host_predicts:
        return NoSurrogate(goal, goal.needed)
    if goal.find is Find.COMPRESSION:
        return UnanimousTwinSurrogate(goal, ensemble)
    if goal.find is Find.ANY:
        return TwinThenNearTieSurrogate(goal, donors)
    has_original = Arm.ORIGINAL in seed.answers
    near_ties = _NearTieWithOriginalSurrogate(goal) if has_original else NearTieSurrogate(goal)
    return EnsembleSurrogate(goal, ensemble, near_ties) if ensemble else near_ties


def refinement_surrogates(goal: Goal, ensemble: tuple[str, ...]) -> tuple[Surrogate, ...]:
    """Return the surrogates that may show the trigger to deviate, and last the device itself."""
    device = NoSurrogate(goal, goal.needed)
    if goal.find is Find.KERNEL:
        return (*(_MemberSurrogate(goal, name) for name in ensemble), device)
    return (_TwinSurrogate(goal), device)


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

    def is_vague(self, outcome: Outcome) -> bool:
        """Whether the twin is one of 8 bits, whose scores mostly tie before they change places."""
        twin = outcome[Arm.TWIN]
        return twin.failure is None and twin.lead() >= self.UNIT


class _NearTieWithOriginalSurrogate(NearTieSurrogate):
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


class _TwinSurrogate(Surrogate):
    """The twin answers for the device."""

    def __init__(self, goal: Goal, kernels: tuple[str, ...] = ()) -> None:
        super().__init__(goal, (Arm.ORIGINAL, Arm.TWIN), kernels)

    def substitute(self, outcome: Outcome) -> Outcome:
        """Return the outcome with the twin's answer as the device's."""
        return with_device(outcome, outcome[Arm.TWIN])


class UnanimousTwinSurrogate(_TwinSurrogate):
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
        unanimous = not any(member.differs(twin) or member.tied for member in members)
        if not unanimous and self._passed_over < self.MOST_PASSED_OVER:
            self._passed_over += 1
            return False
        self._passed_over = 0
        return True


class TwinThenNearTieSurrogate(_TwinSurrogate):
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
        return not all(_answers_are_equal(donor.outcome) for donor in self._donors)


class _MemberSurrogate(Surrogate):
    """One member of the ensemble answers for the device."""

    def __init__(self, goal: Goal, name: str) -> None:
        super().__init__(goal, (Arm.TWIN,), (name,))
        self._name = name

    def substitute(self, outcome: Outcome) -> Outcome:
        """Return the outcome with the member's answer as the device's."""
        return with_device(outcome, outcome.members[self._name])


class EnsembleSurrogate(Surrogate):
    """The first member that disagrees with the twin answers for the device.

    All kernel sets round one and the same model, so the original's preference is informative: where
    it prefers the twin's decision, the device has the member's in 0.23 of the disagreements,
    elsewhere in 0.52 (a ResNet-20 on built-in kernels). The device shows whether the ensemble
    resembles it: after a number of wrong predictions in a row, or of queries without a
    disagreement, the device is queried at near-ties of the twin as well.
    """

    ORIGINAL_MARGIN = 0.02
    """Score by which the original has to prefer the member's decision to the twin's."""

    MOST_PASSED_OVER = 8
    """Disagreements in a row that may be passed over because the original prefers the twin's
    decision. With 4 the ResNet-20 took 2.38 device queries and 351 queries for a finding, with 8 it
    takes 1.93 and 366 (60 seeds, each with a finding)."""

    MOST_WRONG = 8
    """Disagreements in a row that the device did not share, before near-ties count too."""

    MOST_AGREEING = 1000
    """Queries in a row without a disagreement, before near-ties count too."""

    def __init__(self, goal: Goal, kernels: tuple[str, ...], near_ties: Surrogate) -> None:
        super().__init__(goal, near_ties.arms, kernels)
        self._near_ties = near_ties
        self._backoff = QueryBackoff()
        self._passed_over = 0
        self._wrong = 0
        self._agreeing = 0

    def substitute(self, outcome: Outcome) -> Outcome:
        """Return the outcome with the disagreeing member's answer as the device's."""
        return with_device(outcome, self._disagreeing(outcome))

    def sides(self, outcome: Outcome) -> tuple[Answer, Answer]:
        """Return the original's and the twin's answers, or twin's and member's without an original.

        The kernels disagree where the twin nearly ties, and so near the original's boundary. That
        is the one to follow: its margin is smooth, where a twin of 8 bits has steps.
        """
        if Arm.ORIGINAL in outcome.answers:
            return outcome[Arm.ORIGINAL], outcome[Arm.TWIN]
        return super().sides(outcome)

    def decide(self, outcome: Outcome) -> bool:
        """Decide to query where a member deviates from the twin, or that proved uninformative."""
        if not self.deviates(outcome):
            self._agreeing += 1
            useless = self._wrong >= self.MOST_WRONG or self._agreeing >= self.MOST_AGREEING
            return useless and self._near_ties.deviates(outcome) and self._backoff.take()
        self._agreeing = 0
        if self._original_agrees(outcome) or self._passed_over >= self.MOST_PASSED_OVER:
            self._passed_over = 0
            return True
        self._passed_over += 1
        return False

    def update(self, outcome: Outcome) -> None:
        """Update how often in a row the ensemble was wrong."""
        self._backoff.update(outcome)
        self._wrong = 0 if self._goal.met(outcome) is not None else self._wrong + 1

    def _disagreeing(self, outcome: Outcome) -> Answer:
        """Return the answer of the first member that disagrees with the twin, or of the first."""
        members = [outcome.members[name] for name in self.kernels]
        twin = outcome[Arm.TWIN]
        return next((member for member in members if member.differs(twin)), members[0])

    def _original_agrees(self, outcome: Outcome) -> bool:
        """Whether the original prefers the member's decision, or there is no original to tell."""
        twin, member = outcome[Arm.TWIN], self._disagreeing(outcome)
        original = outcome.answers.get(Arm.ORIGINAL)
        if original is None or None in (original.decision, twin.decision, member.decision):
            return True
        if not len(original.scores):
            return True
        margin = original.scores[member.decision] - original.scores[twin.decision]
        return bool(margin >= self.ORIGINAL_MARGIN)


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
        self._to_pass_over = more if _answers_are_equal(outcome) else 0


def _answers_are_equal(outcome: Outcome) -> bool:
    """Whether device and twin answered the same, to the bit; True where one did not answer."""
    twin, device = (outcome.answers.get(arm) for arm in (Arm.TWIN, Arm.DEVICE))
    if twin is None or device is None:
        return True
    return twin.equals(device)
