"""A repair that is judged by labels: its inputs, its candidates, and what is written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import ClassVar, Final, Generic, TypeVar

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.core.answer import Answer
from edgeflare.devices.device import Device
from edgeflare.devices.profile import Profile
from edgeflare.models.model_file import read_model_file
from edgeflare.models.pair import Pair
from edgeflare.repair.device_judgement import opened_on
from edgeflare.repair.judging.candidate_model import CandidateModel
from edgeflare.repair.judging.judgement_inputs import (
    FRESH,
    Labels,
    seeds_among,
    seeds_among_said,
    split_seeds,
    true_labels,
)
from edgeflare.repair.labelled_details import BEFORE, CHOOSE, JUDGE, PLAIN
from edgeflare.repair.repair_candidate import RepairCandidate, ReportProgress, StepProgress
from edgeflare.repair.repair_document import PairToRepair, RepairDocument, TriedCandidate
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.repair.repair_requirements import require_seeds
from edgeflare.repair.repair_run import RepairOutcome, fresh_seeds, repair_plan
from edgeflare.run.run_document import RunDevice
from edgeflare.statistics.binomial import surely_more
from edgeflare_protos import __version__

MOST_LOST: Final = 0.01
"""The share of accuracy that a written candidate loses at most on held-out inputs, where it is not
accuracy that is to rise."""

MOST_LOST_CHOSEN: Final = MOST_LOST / 2
"""The same of a chosen one on the seeds that choose: the one that is best there loses more
elsewhere."""

LOSING: Final = "every candidate loses more than half a point on the seeds that choose"

LabelledInputs = tuple[NDArray[np.generic], Labels]
"""Inputs of the pair's domain, (n, *shape), and their true labels, (n,)."""

Evidence = TypeVar("Evidence")
"""What is seen of a model on a part of the inputs, such as its decisions."""


@dataclass(frozen=True, slots=True)
class LabelledCandidate(Generic[Evidence]):
    """A candidate that was made.

    Attributes:
        tried: what came of it.
        candidate: the files that may be written; None where it may not be chosen.
        evidence: what is seen of it, by part of the inputs; None where it is not looked at.

    """

    tried: TriedCandidate
    candidate: RepairCandidate | None
    evidence: Mapping[str, Evidence] | None

    @classmethod
    def in_place(
        cls, tried: TriedCandidate, content: bytes, evidence: Mapping[str, Evidence]
    ) -> LabelledCandidate[Evidence]:
        """Return a candidate whose file has other numbers alone, so that it costs nothing more."""
        made = structs.replace(tried, size_bytes=len(content))
        return cls(made, RepairCandidate(tried.name, content, None, in_place=True), evidence)


class LabelledRepair(ABC, Generic[Evidence]):
    """A repair of an opened pair of which the seeds have labels.

    Its life: what the pair lacks is refused (`require_pair`, `require_seeds`, `prepare`);
    `candidates` are made of the seeds to fit with, and looked at beside the models `before`; one is
    taken by the part that chooses (`choice`), and written if the `verdict` by the other parts is
    for it, and no device that runs it and the model before (`seen_on`) has `lost` by it; all is
    `described`.

    Attributes:
        pair: the pair.
        request: the settings.
        opened: the models, the seeds and the devices.
        labels: true labels of the seeds, (seeds,).
        rng: the generator that has divided the seeds.
        split: the parts of the seeds.
        parts: the inputs that choose, those that judge and those of `--test`, if any, by part.

    """

    why_none: ClassVar[str] = LOSING
    """Why nothing is written where no candidate is chosen."""

    def __init__(
        self, pair: Pair, profiles: Sequence[Profile], request: RepairRequest, stack: ExitStack
    ) -> None:
        """Open a pair, and refuse what cannot be repaired or judged, before anything is fitted.

        Args:
            pair: a pair of classifiers with one input.
            profiles: the devices, on which the chosen candidate is judged too.
            request: the settings.
            stack: what is open until the repair ends.

        Raises:
            UserError: seeds are too few or without labels, or the method lacks something else.

        """
        self.pair, self.request = pair, request
        self.require_pair()
        self.opened: OpenedPair = open_pair(
            pair, repair_plan(None, profiles, request.limit), profiles, stack
        )
        self.require_seeds(len(self.opened.seeds))
        self.labels = true_labels(self.opened, self.opened.seeds)
        self.rng = np.random.default_rng(request.rng_seed)
        self.split = split_seeds(self.labels, self.rng)
        self.parts = self._parts()
        self.prepare()

    @classmethod
    def repaired(
        cls,
        pair: Pair,
        profiles: Sequence[Profile],
        request: RepairRequest,
        progress: ReportProgress,
    ) -> RepairOutcome:
        """Repair a pair; raises as `__init__`, and where no candidate can be made of the models.

        Args:
            pair: as of `__init__`.
            profiles: likewise.
            request: likewise.
            progress: is called as the steps go on.

        """
        with ExitStack() as stack:
            return cls(pair, profiles, request, stack).outcome(progress)

    @classmethod
    def planned(cls, pair: Pair, profiles: Sequence[Profile], request: RepairRequest) -> str:
        """Open models and devices, and say in a sentence what `repaired` would do; raises likewise.

        Args: as of `repaired`.

        """
        with ExitStack() as stack:
            repair = cls(pair, profiles, request, stack)
        names = ", ".join(profile.name for profile in profiles)
        repeated = seeds_among_said(repair._repeated)
        return f"{repair.split.sizes}. {repair.plan}; on {names}. {repeated}".rstrip()

    def require_pair(self) -> None:
        """Refuse models that cannot be repaired so, before they are opened."""

    def require_seeds(self, count: int) -> None:
        """Refuse too few seeds."""
        require_seeds(self.pair.name, count)

    def prepare(self) -> None:
        """Make what candidates are made of; refuse what does not allow any."""

    @property
    def choosing(self) -> NDArray[np.int64]:
        """Positions of the seeds that choose."""
        return self.split.choose

    @property
    @abstractmethod
    def plan(self) -> str:
        """What would be tried, the beginning of a sentence."""

    @abstractmethod
    def candidates(self, progress: ReportProgress) -> Sequence[LabelledCandidate[Evidence]]:
        """Make candidates, and look at each; `progress` is called as the steps go on."""

    @abstractmethod
    def before(self) -> Mapping[str, Evidence]:
        """Return what is seen of the models before, by part."""

    @abstractmethod
    def choice(self, evidence: Mapping[str, Evidence]) -> str | None:
        """Return the candidate to judge; None where there is none.

        Args:
            evidence: what is seen on the seeds that choose of the models before and of the
                candidates that may be chosen, by name.

        """

    @abstractmethod
    def verdict(
        self, before: Mapping[str, Evidence], after: Mapping[str, Evidence], name: str
    ) -> tuple[bool, str]:
        """Say whether the chosen candidate is to be written, by inputs that did not choose.

        Args:
            before: what is seen of the models before, by part.
            after: what is seen of the candidate.
            name: the candidate's name.

        """

    @abstractmethod
    def described(
        self,
        document: RepairDocument,
        evidence: Mapping[str, Mapping[str, Evidence]],
        on_devices: Mapping[str, Evidence],
    ) -> RepairDocument:
        """Return the document with the section of this repair.

        Args:
            document: the document without it.
            evidence: what is seen of each model, the one before first, by part.
            on_devices: what is seen of the chosen one on the seeds that judge, by device; empty
                where the host's answers are against it.

        """

    @abstractmethod
    def seen_on(self, device: CandidateModel, on_host: Evidence) -> Evidence:
        """Return what is seen of a model on the seeds that judge.

        Args:
            device: the model, run by a device.
            on_host: what is seen of it on the host.

        """

    @abstractmethod
    def lost(self, before: Evidence, after: Evidence) -> str | None:
        """Return what is worse after than before, in words; None where nothing is.

        Args:
            before: what a device shows of the model before, on the seeds that judge.
            after: what it shows of the chosen candidate.

        """

    def outcome(self, progress: ReportProgress) -> RepairOutcome:
        """Make candidates, choose one and judge it."""
        made = self.candidates(progress)
        before = self.before()
        evidence = {BEFORE: before} | {
            each.tried.name: each.evidence for each in made if each.evidence is not None
        }
        may_be_chosen = [BEFORE, *(each.tried.name for each in made if each.candidate is not None)]
        chosen = self.choice({name: evidence[name][CHOOSE] for name in may_be_chosen})
        best = next((each for each in made if each.tried.name == chosen), None)
        gains, why = False, self.why_none
        if best is not None:
            gains, why = self.verdict(before, evidence[best.tried.name], best.tried.name)
        on_devices: dict[str, Evidence] = {}
        if best is not None and best.candidate is not None and gains:
            sides = before[JUDGE], evidence[best.tried.name][JUDGE]
            for device in self.opened.devices:
                old, on_devices[device.profile.name] = self._on_device(
                    device, best.candidate, *sides
                )
                if lost := self.lost(old, on_devices[device.profile.name]):
                    gains, why = False, f"on {device.profile.name} {best.tried.name} loses: {lost}"
        written = best if gains else None
        document = self._document([each.tried for each in made], written, why)
        document = self.described(document, evidence, on_devices)
        return RepairOutcome(document, None if written is None else written.candidate)

    def fitted_rng(self) -> np.random.Generator:
        """Return a generator of the repair's seed: each candidate has the same draws of its own."""
        return np.random.default_rng(self.request.rng_seed)

    def ids(self, count: int) -> list[int]:
        """Return a seed for each input: a model with one input has nothing else of a seed."""
        return [self.opened.seeds.seed_ids[0]] * count

    def answers(self, model: CandidateModel, inputs: NDArray[np.generic]) -> list[Answer]:
        """Return what a model answers to inputs, which need not be seeds."""
        return model.answers(inputs, self.ids(len(inputs)))

    @property
    def held_out(self) -> list[str]:
        """The parts that choose nothing."""
        return [part for part in self.parts if part != CHOOSE]

    def _parts(self) -> dict[str, LabelledInputs]:
        inputs = np.asarray(self.opened.seeds.inputs)
        places = {CHOOSE: self.choosing, JUDGE: self.split.judge}
        parts = {part: (inputs[at], self.labels[at]) for part, at in places.items()}
        fresh = fresh_seeds(self.opened, self.request)
        self._repeated = seeds_among(self.opened, fresh)
        if fresh is not None:
            labels = true_labels(self.opened, fresh, self.request.test)
            parts[FRESH] = np.asarray(fresh.inputs), labels
        return parts

    def _on_device(
        self, device: Device, candidate: RepairCandidate, before: Evidence, after: Evidence
    ) -> tuple[Evidence, Evidence]:
        """Return what a device shows of the model before and of a candidate.

        Args:
            device: one of the pair's.
            candidate: the candidate.
            before: what the host shows of the model before, on the seeds that judge.
            after: what it shows of the candidate.

        """
        content = read_model_file(self.pair.compressed)
        with opened_on(device, content, self.opened) as there:
            old = self.seen_on(there, before)
        with opened_on(device, candidate.content, self.opened) as there:
            return old, self.seen_on(there, after)

    def _document(
        self,
        tried: Sequence[TriedCandidate],
        written: LabelledCandidate[Evidence] | None,
        why: str,
    ) -> RepairDocument:
        return RepairDocument(
            edgeflare=__version__,
            pair=PairToRepair.of(self.pair),
            run=None,
            devices=tuple(map(RunDevice.of, self.opened.devices)),
            classes=tuple(self.pair.classes),
            plan=self.request,
            seeds=self.split.sizes,
            fresh_seeds=self._repeated,
            residual=None,
            candidates=tuple(tried),
            front=(),
            chosen=None if written is None else written.tried.name,
            written=written is not None,
            why=why,
        )


Made = TypeVar("Made")


def each_made(
    makers: Mapping[str, Callable[[StepProgress], Made]], progress: ReportProgress
) -> Iterator[tuple[TriedCandidate, Made]]:
    """Make candidates one after the other, and yield each with its name and the time it took.

    Args:
        makers: what makes each, by name.
        progress: is called as the steps go on.

    """
    for number, (name, make) in enumerate(makers.items()):
        progress("candidates", number, len(makers))
        begun = monotonic()
        made = make(partial(progress, name))
        yield TriedCandidate(name=name, seconds=round(monotonic() - begun, 3)), made
    progress("candidates", len(makers), len(makers))


def surely_right(right: Mapping[str, NDArray[np.bool_]]) -> str | None:
    """Return the candidate to judge; None where there is none.

    It is "plain", unless another one is right on surely more of the inputs that choose.

    Args:
        right: where each candidate is right, by name.

    """
    if PLAIN not in right:
        return max(right, key=lambda name: int(right[name].sum()), default=None)
    plain = right[PLAIN]
    surely = [
        name
        for name, found in right.items()
        if surely_more(int((found & ~plain).sum()), int((plain & ~found).sum()))
    ]
    return max(surely, key=lambda name: int(right[name].sum()), default=PLAIN)
