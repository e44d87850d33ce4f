"""The choice among the candidates of a repair: each is made, checked and judged."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory

from edgeflare.campaign.opened_pair import OpenedPair
from edgeflare.core.seeds import Seeds
from edgeflare.errors import UserError
from edgeflare.models.model_file import read_model_file
from edgeflare.repair.cost_limits import least_limit
from edgeflare.repair.device_judgement import cost_on, refusal_by
from edgeflare.repair.fitting.candidate_check import candidate_fault
from edgeflare.repair.judging.candidate_model import NAME
from edgeflare.repair.judging.judged_inputs import SEEDS, JudgedSet
from edgeflare.repair.judging.judgement import SCORED, Judgement, SetAside, judged
from edgeflare.repair.repair_candidate import (
    CandidateMaker,
    NoCandidate,
    RepairCandidate,
    ReportProgress,
)
from edgeflare.repair.repair_cost import Cost, same_work
from edgeflare.repair.repair_outcome import TriedCandidate
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.repair.stored_candidates import StoredCandidates, Tried
from edgeflare.run.sign_test import sign_test

SURE = 0.05
"""The p value below which more inputs are mended than broken not by chance."""


@dataclass(frozen=True, slots=True)
class ChosenCandidate:
    """What was chosen among candidates.

    Attributes:
        tried: all of them, in their order.
        chosen: the best within the limits; None where none surely gains.
        offered: the best beyond the limits, and what came of it; None where none surely gains more
            than the chosen one.

    """

    tried: Sequence[TriedCandidate]
    chosen: RepairCandidate | None
    offered: tuple[RepairCandidate, TriedCandidate] | None


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

    def best(self, makers: Sequence[CandidateMaker]) -> ChosenCandidate:
        """Try candidates, and choose the best of those that surely gain.

        Raises:
            UserError: none can be made of these models and inputs.
            InfrastructureError: a device or a worker process is lost for good.

        """
        tried: list[TriedCandidate] = []
        gaining: list[tuple[float, RepairCandidate, TriedCandidate]] = []
        judged_methods: set[str] = set()
        for number, maker in enumerate(makers):
            self.progress("candidates", number, len(makers))
            if maker.instead_of in judged_methods:
                continue
            for candidate, result in self._stored_or_tried(maker):
                tried.append(result)
                if candidate is None or result.judgement is None:
                    continue
                if not result.needs:
                    judged_methods.add(maker.method)
                if surely_gains(result.judgement):
                    gaining.append((result.judgement.score, candidate, result))
        self.progress("candidates", len(makers), len(makers))
        _require_made(tried)
        within = [one for one in gaining if not one[2].needs]
        best = min(within, key=itemgetter(0), default=None)
        beyond = [one for one in gaining if one[2].needs and (best is None or one[0] < best[0])]
        offered = min(beyond, key=itemgetter(0), default=None)
        return ChosenCandidate(
            tried,
            chosen=None if best is None else best[1],
            offered=None if offered is None else offered[1:],
        )

    def costs(self, candidate: RepairCandidate) -> tuple[Cost, ...]:
        """Measure a candidate and the model before in turns, on each device."""
        images, limit = next(iter(self.sets.values())).images, self.request.latency_limit
        return tuple(
            cost_on(one, candidate.content, self.opened, images, limit)
            for one in self.opened.devices
        )

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
        """Judge a candidate, beyond the limits too; none that kernels or devices refuse."""
        fault = self._fault(candidate)
        if fault is not None:
            return None, replace(made, set_aside=fault)
        if same_work(read_model_file(self.opened.pair.compressed), candidate.content):
            made = replace(made, ratio=1.0)
        else:
            costs = self.costs(candidate)
            made = replace(made, ratio=max(one.ratio for one in costs), costs=costs)
        judgement = judged(candidate.content, self.opened, self.sets)
        if isinstance(judgement, SetAside):
            return None, replace(made, set_aside=judgement.reason)
        needs = self._needs(candidate, made.costs)
        said = " and ".join(f"{option} {needed}" for option, needed in needs.items())
        aside = f"it needs {said}" if said else None
        return candidate, replace(made, judgement=judgement, needs=needs, set_aside=aside)

    @property
    def _size_before(self) -> int:
        return self.opened.pair.compressed.stat().st_size

    def _needs(self, candidate: RepairCandidate, costs: Sequence[Cost]) -> dict[str, str]:
        """Return the limits that a candidate exceeds, by option, each with what it needs."""
        needs = {}
        size, latency = self.request.size_limit, self.request.latency_limit
        before, after = self._size_before, len(candidate.content)
        if size is not None and not size.allows(before, after):
            needs["--max-size"] = least_limit(before, after)
        slower = [one.ratio for one in costs if latency is not None and one.exceeds(latency)]
        if slower:
            needs["--max-latency"] = least_limit(1.0, max(slower))
        return needs

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
