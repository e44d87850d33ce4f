"""The choice among the candidates of a repair: each is made, checked and judged."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from edgeflare.campaign.opened_pair import OpenedPair
from edgeflare.core.seeds import Seeds
from edgeflare.errors import UserError
from edgeflare.repair.cost_limits import least_limit
from edgeflare.repair.device_judgement import cost_on, refusal_by
from edgeflare.repair.fitting.candidate_check import candidate_fault
from edgeflare.repair.judging.candidate_model import NAME
from edgeflare.repair.judging.judged_inputs import SEEDS, JudgedSet
from edgeflare.repair.judging.judgement import SCORED, Judgement, SetAside, judged
from edgeflare.repair.repair_candidate import CandidateMaker, NoCandidate, RepairCandidate
from edgeflare.repair.repair_cost import BATCHES, FEW_BATCHES, Cost, same_work
from edgeflare.repair.repair_outcome import TriedCandidate
from edgeflare.repair.repair_progress import ReportProgress
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.repair.stored_candidates import StoredCandidates, Tried
from edgeflare.run.sign_test import sign_test

SURE = 0.05
"""The p value below which more inputs are mended than broken not by chance."""


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
    sets: Mapping[str, JudgedSet]
    stored: StoredCandidates
    progress: ReportProgress

    def best(
        self, makers: Sequence[CandidateMaker]
    ) -> tuple[list[TriedCandidate], RepairCandidate | None]:
        """Try candidates, and return all of them and the best of those that surely gain.

        Raises:
            UserError: the limits exclude all of them, or none can be made of these models and
                inputs.
            InfrastructureError: a device or a worker process is lost for good.

        """
        tried: list[TriedCandidate] = []
        best: tuple[float, RepairCandidate] | None = None
        judged_methods: set[str] = set()
        for number, maker in enumerate(makers):
            self.progress("candidates", number, len(makers))
            if maker.instead_of in judged_methods:
                continue
            for candidate, result in self._stored_or_tried(maker):
                tried.append(result)
                if candidate is None or result.judgement is None:
                    continue
                judged_methods.add(maker.method)
                score = result.judgement.score
                if surely_gains(result.judgement) and (best is None or score < best[0]):
                    best = score, candidate
        self.progress("candidates", len(makers), len(makers))
        _require_made(tried)
        _require_allowed(tried)
        return tried, None if best is None else best[1]

    def cost(self, candidate: RepairCandidate, batches: int = BATCHES) -> Cost:
        """Measure a candidate and the model before in turns, on the first device."""
        images = next(iter(self.sets.values())).images
        return cost_on(self.opened.devices[0], candidate.content, self.opened, images, batches)

    def _stored_or_tried(self, maker: CandidateMaker) -> Sequence[Tried]:
        """Return what came of a plan: what is stored of it, or what is stored now."""
        stored = self.stored.read(maker.name)
        if stored is None:
            stored = list(self._tried(maker))
            self.stored.write(maker.name, stored)
        return stored

    def _tried(self, maker: CandidateMaker) -> Iterator[Tried]:
        """Make and judge candidates; one that fails is set aside, and others are tried."""
        begun = time.monotonic()
        try:
            candidates = maker.make(partial(self.progress, maker.name))
        except (NoCandidate, UserError) as error:
            made = TriedCandidate(maker.name, time.monotonic() - begun, None, set_aside=str(error))
            if isinstance(error, NoCandidate):
                yield None, replace(made, details=error.details)
            else:
                yield None, replace(made, unmade=True)
            return
        seconds = (time.monotonic() - begun) / max(1, len(candidates))
        for one in candidates:
            size = len(one.content)
            yield self._judged(one, TriedCandidate(one.name, seconds, size, details=one.details))

    def _judged(self, candidate: RepairCandidate, made: TriedCandidate) -> Tried:
        """Judge a candidate, or set it aside where limits, kernels or devices refuse it."""
        needed = self._size_needed(candidate)
        if needed is not None:
            return None, replace(made, set_aside=needed, beyond_limits=True)
        fault = self._fault(candidate)
        if fault is not None:
            return None, replace(made, set_aside=fault)
        if same_work(self.opened.pair.compressed.read_bytes(), candidate.content):
            made = replace(made, ratio=1.0)
        else:
            limit = self.request.latency_limit
            cost = self.cost(candidate, FEW_BATCHES if limit is None else BATCHES)
            made = replace(made, ratio=cost.ratio)
            times = cost.seconds_before, cost.seconds_before * cost.ratio
            if limit is not None and not limit.allows(*times):
                needed = f"it needs --max-latency {least_limit(*times)}"
                return None, replace(made, set_aside=needed, beyond_limits=True)
        judgement = judged(candidate.content, self.opened, self.sets)
        if isinstance(judgement, SetAside):
            return None, replace(made, set_aside=judgement.reason)
        return candidate, replace(made, judgement=judgement)

    @property
    def _size_before(self) -> int:
        return self.opened.pair.compressed.stat().st_size

    def _size_needed(self, candidate: RepairCandidate) -> str | None:
        """Return the limit that a candidate's size needs; None where it is within the limit."""
        limit = self.request.size_limit
        before, after = self._size_before, len(candidate.content)
        if limit is None or limit.allows(before, after):
            return None
        return f"it needs --max-size {least_limit(before, after)}"

    def _fault(self, candidate: RepairCandidate) -> str | None:
        """Return why a kernel set of the host or a device does not run a candidate, if one does."""
        if candidate.recipe is not None or len(candidate.content) != self._size_before:
            with TemporaryDirectory(prefix="edgeflare-") as folder:
                path = Path(folder) / NAME
                path.write_bytes(candidate.content)
                rewritten = replace(self.opened.pair, compressed=path)
                seeds = self.sets[SEEDS]
                few = Seeds(seeds.images, None, (), ids=tuple(seeds.seed_ids.tolist()))
                fault = candidate_fault(rewritten, few)
            if fault is not None:
                return fault
        reasons = (refusal_by(one, candidate.content, self.opened) for one in self.opened.devices)
        return next(filter(None, reasons), None)


def surely_gains(judgement: Judgement) -> bool:
    """Whether a candidate mends more of the scored inputs than it breaks, and not by chance."""
    mended, broken = mended_and_broken(judgement)
    return judgement.score < 1.0 and mended > broken and sign_test(mended, broken) < SURE


def mended_and_broken(judgement: Judgement) -> tuple[int, int]:
    """Return how many inputs of the scored sets are mended, and broken."""
    changes = [judgement.changes[name] for name in SCORED]
    return sum(one.mended for one in changes), sum(one.broken for one in changes)


def _require_made(tried: Sequence[TriedCandidate]) -> None:
    """Refuse models and inputs of which no candidate can be made.

    Raises:
        UserError: there are none, with the first reason.

    """
    if all(one.unmade for one in tried):
        raise UserError(str(tried[0].set_aside))


def _require_allowed(tried: Sequence[TriedCandidate]) -> None:
    """Refuse limits that exclude every candidate, and name the nearest that would not.

    Raises:
        UserError: they do.

    """
    beyond = [one for one in tried if one.beyond_limits]
    if beyond and all(one.judgement is None for one in tried):
        nearest = min(beyond, key=lambda one: (one.ratio or 0.0, one.size or 0))
        aside = str(nearest.set_aside).removeprefix("it ")
        raise UserError(f"the limits exclude every candidate: {nearest.name} {aside}")
