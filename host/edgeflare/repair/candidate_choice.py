"""The choice among the candidates of a repair: each is made, checked and judged."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter

from msgspec import structs

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.core.answer import Answer
from edgeflare.errors import UserError
from edgeflare.repair.candidate_check import CandidateCheck
from edgeflare.repair.candidate_details import NO_DETAILS
from edgeflare.repair.candidate_store import Attempt, StoredCandidates, stored_file
from edgeflare.repair.judging.judgement import Judgement, SetAside, compared, judged
from edgeflare.repair.judging.judgement_inputs import JudgedSet, SetName
from edgeflare.repair.repair_candidate import (
    CandidatePlan,
    EnoughTried,
    NoCandidate,
    RepairCandidate,
    ReportProgress,
)
from edgeflare.repair.repair_cost import Latency
from edgeflare.repair.repair_document import OnDevice, TriedCandidate
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.statistics.binomial import surely_more


@dataclass(frozen=True, slots=True)
class ChosenCandidate:
    """What was chosen among candidates.

    Attributes:
        tried: all of them, in their order.
        chosen: the best within the limits; None where none surely gains.
        offered: the best beyond the limits, and what came of it; None where none that surely gains
            has a smaller score than the chosen one.

    """

    tried: Sequence[TriedCandidate]
    chosen: RepairCandidate | None
    offered: tuple[RepairCandidate, TriedCandidate] | None

    @property
    def front(self) -> list[str]:
        """Names of candidates that no other dominates in time, score and size, sorted by these."""
        points = {
            candidate.name: (candidate.latency_ratio, candidate.score, candidate.size_bytes)
            for candidate in self.tried
            if candidate.latency_ratio is not None
            and candidate.score is not None
            and candidate.size_bytes is not None
        }
        return pareto_front(points)


@dataclass(frozen=True, slots=True)
class CandidateChoice:
    """What candidates are held to and judged by.

    Attributes:
        opened: the pair and its devices.
        request: the settings of the repair.
        sets: the inputs to choose by, by the name of the set.
        stored: the candidates that were tried before, and those that are tried now.
        progress: is called as the steps go on.

    """

    opened: OpenedPair
    request: RepairRequest
    sets: Mapping[SetName, JudgedSet]
    stored: StoredCandidates
    progress: ReportProgress

    def best(self, plans: Sequence[CandidatePlan]) -> ChosenCandidate:
        """Try candidates, and choose the best of those that surely gain.

        Raises:
            UserError: none can be made of these models and inputs.
            EnoughTried: no candidate was tried yet.

        """
        attempts = self._attempts(plans)
        gaining = _gaining(attempts)
        if all(attempt.unmade for attempt in attempts):  # for the first reason
            raise UserError(str(attempts[0].tried.set_aside))
        best = _best_within(gaining)
        beyond = [gain for gain in gaining if gain[2].needs and (best is None or gain[0] < best[0])]
        offered = min(beyond, key=itemgetter(0), default=None)
        return ChosenCandidate(
            [attempt.tried for attempt in attempts],
            chosen=None if best is None else best[1],
            offered=None if offered is None else offered[1:],
        )

    @property
    def check(self) -> CandidateCheck:
        """What a candidate costs, and what refuses it."""
        return CandidateCheck(self.opened, self.request, next(iter(self.sets.values())))

    def _attempts(self, plans: Sequence[CandidatePlan]) -> list[Attempt]:
        """Try candidates, or read what came of them, until there are no more or enough.

        They are held to the limits when that decides whether others are tried, and at the end.
        """
        found: dict[str, list[Attempt]] = {}
        try:
            for number, plan in enumerate(plans):
                self.progress("candidates", number, len(plans))
                if plan.instead_of is not None:
                    self._hold(found)
                    others = (one.name for one in plans if one.method == plan.instead_of)
                    if _serves([attempt for name in others for attempt in found.get(name, ())]):
                        continue
                stored = self.stored.read(plan.name)
                if stored is None:
                    stored = self._tried(plan)
                    self.stored.write(plan.name, stored)
                found[plan.name] = stored
            self.progress("candidates", len(plans), len(plans))
        except EnoughTried:
            if not found:
                raise
        self._hold(found)
        return [attempt for attempts in found.values() for attempt in attempts]

    def _hold(self, found: Mapping[str, list[Attempt]]) -> None:
        """Hold judged candidates to the limits, the best first, and store what comes of that.

        Where the best one is within the limits, no time of another decides.

        Args:
            found: what came of plans, by their names; is changed.

        """
        left = [
            (attempt.tried.score or 0.0, plan, at)
            for plan, attempts in found.items()
            for at, attempt in enumerate(attempts)
            if not attempt.held
        ]
        for _, plan, at in sorted(left, key=itemgetter(0)):
            others = [attempt for attempts in found.values() for attempt in attempts]
            found[plan][at] = self._held(found[plan][at], others)
        for plan in dict.fromkeys(plan for _, plan, _ in left):
            self.stored.write(plan, found[plan])

    def _tried(self, plan: CandidatePlan) -> list[Attempt]:
        """Make and judge candidates; one that fails is set aside, and others are tried."""
        begun = time.monotonic()
        try:
            candidates = plan.make(partial(self.progress, plan.name))
        except (NoCandidate, UserError) as error:
            made = TriedCandidate(
                name=plan.name,
                seconds=round(time.monotonic() - begun, 3),
                set_aside=str(error),
                details=error.details if isinstance(error, NoCandidate) else NO_DETAILS,
            )
            return [Attempt(None, made, unmade=isinstance(error, UserError))]
        seconds = round((time.monotonic() - begun) / max(1, len(candidates)), 3)
        tried: list[Attempt] = []
        for number, candidate in enumerate(candidates):
            self.progress("judged", number, len(candidates))
            made = TriedCandidate(
                name=candidate.name,
                seconds=seconds,
                size_bytes=len(candidate.content),
                details=candidate.details,
            )
            tried.append(self._judged(candidate, made))
        return tried

    def _judged(self, candidate: RepairCandidate, made: TriedCandidate) -> Attempt:
        """Judge a candidate, beyond the limits too; none that kernels or devices refuse."""
        check = self.check
        if (fault := check.fault(candidate)) is not None:
            return Attempt(None, structs.replace(made, set_aside=fault))
        judgement = judged(candidate.content, self.opened, self.sets)
        if isinstance(judgement, SetAside):
            return Attempt(None, structs.replace(made, set_aside=judgement.reason))
        file = stored_file(candidate.name)
        return Attempt(
            candidate, structs.replace(made, file=file, score=judgement.score, sets=judgement)
        )

    def _held(self, attempt: Attempt, others: Sequence[Attempt]) -> Attempt:
        """Hold a judged candidate to the limits.

        Its time takes longer to measure than its answers to judge, so that it is measured only
        where it can decide: see `_unmeasured`.
        """
        candidate, judgement = attempt.candidate, attempt.tried.sets
        if candidate is None or judgement is None:
            return attempt
        check = self.check
        timed = [
            (other.candidate.content, other.tried.latency)
            for other in others
            if other.candidate is not None and other.tried.latency
        ]
        latency: Sequence[Latency] | str | None = check.known_latency(candidate, timed)
        if latency is None:
            latency = _unmeasured(judgement, others)
        if latency is None:
            latency = check.measured(candidate, self.request.latency_limit)
        return replace(attempt, tried=check.held(candidate, attempt.tried, latency))


_Gain = tuple[float, RepairCandidate, TriedCandidate]
"""The score of a candidate that surely gains, the candidate, and what came of it."""


def _gaining(attempts: Sequence[Attempt]) -> list[_Gain]:
    return [
        (attempt.tried.sets.score, attempt.candidate, attempt.tried)
        for attempt in attempts
        if attempt.candidate is not None
        and attempt.tried.sets is not None
        and surely_gains(attempt.tried.sets)
    ]


def _best_within(gaining: Sequence[_Gain]) -> _Gain | None:
    """Return the first with the least score of those whose cost is known and within the limits."""
    within = (gain for gain in gaining if not gain[2].needs and gain[2].latency_ratio is not None)
    return min(within, key=itemgetter(0), default=None)


def _unmeasured(judgement: Judgement, others: Sequence[Attempt]) -> str | None:
    """Return why no time makes a candidate the chosen or the offered one; None where one may.

    Args:
        judgement: the candidate on the inputs to choose by.
        others: what came of others, with their times as far as these are known.

    """
    if not surely_gains(judgement):
        return "it does not surely gain"
    best = _best_within(_gaining(others))
    if best is not None and best[0] <= judgement.score:
        return f"{best[1].name} gains as much or more within the limits"
    return None


def _serves(attempts: Sequence[Attempt]) -> bool:
    """Whether a method has a candidate with a score below 1 within the limits.

    Where none has a time, since another candidate gains as much within the limits, it is not the
    limits that exclude the method either.
    """
    tried = [attempt.tried for attempt in attempts]
    better = [one for one in tried if one.score is not None and one.score < 1.0]
    timed = [one for one in better if one.latency_ratio is not None]
    return any(not one.needs for one in timed or better)


def pareto_front(points: Mapping[str, tuple[float, ...]]) -> list[str]:
    """Return the names of the points that no other point dominates, in order of their values.

    One point dominates another if none of its values is greater, and one is less.

    Args:
        points: values of each point, of which smaller is better, by name; as many for each.

    """

    def dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
        return one != other and all(a <= b for a, b in zip(one, other, strict=True))

    values = points.values()
    kept = (
        n for n, point in points.items() if not any(dominates(other, point) for other in values)
    )
    return sorted(kept, key=lambda name: points[name])


def verdict(judgement: Judgement, on_devices: Sequence[OnDevice]) -> tuple[bool, str]:
    """Say whether the chosen candidate is to be written, and why.

    Args:
        judgement: on inputs that nothing was chosen on.
        on_devices: the same inputs on each device.

    """
    mended, broken = mended_and_broken(judgement)
    before = sum(input_set.before.deviating for input_set in judgement.scored)
    after = sum(input_set.after.deviating for input_set in judgement.scored)
    said = f"{before:,} held-out inputs near the boundary deviate before and {after:,} after"
    if not surely_gains(judgement):
        return False, (
            f"the chosen candidate does not surely gain on held-out inputs: {said}, {mended:,} are"
            f" mended and {broken:,} broken"
        )
    if (fresh := judgement.fresh) is not None:
        old, new = fresh.before.deviating, fresh.after.deviating
        if new > old:
            return False, f"on fresh data {new:,} inputs would deviate instead of {old:,}"
    for device in on_devices:
        lost = sum(input_set.before.failed for input_set in device.sets.values())
        failed = sum(input_set.after.failed for input_set in device.sets.values())
        where = f"on {device.device}"
        if failed > lost:
            return False, f"{where} it gives no answer on {failed - lost:,} held-out inputs"
        old, new = device.deviating
        if new >= old:
            return False, f"{where} {new:,} held-out inputs would deviate instead of {old:,}"
    return True, said


def surely_gains(judgement: Judgement) -> bool:
    """Whether a candidate mends more of the scored inputs than it breaks, and not by chance."""
    return judgement.score < 1.0 and surely_more(*mended_and_broken(judgement))


def gain_beyond(
    sets: Mapping[SetName, JudgedSet],
    after: Mapping[SetName, Sequence[Answer]],
    written: Mapping[SetName, Sequence[Answer]] | None,
) -> Judgement | None:
    """Return the judgement of a candidate beyond the limits; None where it does not surely gain.

    It has to gain beside the model before, and beside the candidate that is written.

    Args:
        sets: the inputs that judge.
        after: the candidate's answers.
        written: those of the candidate that is written; None where none is.

    """
    judgement = compared(sets, after)
    if not surely_gains(judgement):
        return None
    if written is not None:
        instead = {name: replace(known, before=written[name]) for name, known in sets.items()}
        if not surely_gains(compared(instead, after)):
            return None
    return judgement


def mended_and_broken(judgement: Judgement) -> tuple[int, int]:
    """Return how many inputs of the scored sets are mended, and broken."""
    sets = judgement.scored
    return sum(input_set.mended for input_set in sets), sum(input_set.broken for input_set in sets)
