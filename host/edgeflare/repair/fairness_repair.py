"""The repair of a classifier of table rows whose decisions depend on an attribute.

Seeds are divided as those of every repair: candidates are tuned with three fifths, without their
labels, these and another fifth choose by labels, and the last fifth judges, with the inputs of
`--test`. All figures are of what the runtime computes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from edgeflare import __version__
from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.core.query import Arm
from edgeflare.core.seeds import Seeds, is_labelled
from edgeflare.devices.device import Device
from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.models.model_file import read_model_file
from edgeflare.models.pair import Pair
from edgeflare.repair.device_judgement import opened_on
from edgeflare.repair.judging.candidate_model import CandidateModel, open_candidate
from edgeflare.repair.judging.fairness import (
    MEAN_OF_BOTH,
    Attribute,
    Fairness,
    FairnessOnDevice,
    FairnessRepair,
    FairnessRow,
    Labels,
    fairness,
    falls_surely,
    require_rates,
)
from edgeflare.repair.judging.judgement_inputs import SeedSplit, split_seeds
from edgeflare.repair.post_training.fmt import TuningRows, fit_fmt
from edgeflare.repair.post_training.mean_distillation import distil_mean
from edgeflare.repair.repair_candidate import RepairCandidate, ReportProgress, StepProgress
from edgeflare.repair.repair_document import PairToRepair, RepairDocument, TriedCandidate
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.repair.repair_requirements import require_seeds
from edgeflare.repair.repair_run import RepairOutcome, fresh_seeds, repair_plan
from edgeflare.run.run_document import RunDevice

MOST_LOST = 0.01
"""The share of accuracy that a written candidate loses at most on held-out rows."""

_MOST_LOST_CHOSEN = MOST_LOST / 2
"""The same of a chosen one on the seeds that choose: the one that is best there loses more
elsewhere."""

_MOST_ROWS = 20_000
"""Rows to tune with, at most."""

_BEFORE = "before"
_DISTILLED = "distilled-mean"
_STEPS = (200, 600, 1800)

_AS_WELL = 0.01
"""The bias that the plain candidate may have more and still do as well."""

_Rows = tuple[NDArray[np.generic], Labels]
"""Inputs and their labels."""

_Make = Callable[[StepProgress], bytes]


def repair_fairness(
    pair: Pair,
    profiles: Sequence[Profile],
    request: RepairRequest,
    progress: ReportProgress,
) -> RepairOutcome:
    """Tune the compressed model of a pair so that an attribute decides less.

    Args:
        pair: a classifier of rows of a table; its last class is the favourable one.
        profiles: the devices, on which the chosen candidate is judged too.
        request: the settings, with the attribute's columns.
        progress: is called as the steps go on.

    Raises:
        UserError: seeds are too few, without labels or no rows of a table, the columns have other
            than two combinations, a group of a part lacks a label, or no candidate can be made of
            the model.

    """
    with ExitStack() as stack:
        return _opened(pair, profiles, request, stack).outcome(progress)


def planned_fairness(pair: Pair, profiles: Sequence[Profile], request: RepairRequest) -> str:
    """Open models and devices, and say in a sentence what `repair_fairness` would do.

    Args:
        pair: as of `repair_fairness`.
        profiles: the devices.
        request: the settings.

    Raises:
        UserError: as by `repair_fairness`, before anything is tuned.

    """
    columns = ", ".join(map(str, request.groups))
    with ExitStack() as stack:
        judging = _opened(pair, profiles, request, stack)
    return (
        f"{judging.split.sizes}. Column {columns}: FMT and the mean of both answers, in place; on"
        f" {', '.join(profile.name for profile in profiles)}."
    )


def _opened(
    pair: Pair, profiles: Sequence[Profile], request: RepairRequest, stack: ExitStack
) -> _Judging:
    """Open a pair, and refuse rows by which no candidate can be judged."""
    opened = open_pair(pair, repair_plan(None, profiles, request.limit), profiles, stack)
    require_seeds(pair.name, len(opened.seeds))
    labels = _known_labels(opened, opened.seeds)
    rng = np.random.default_rng(request.rng_seed)
    attribute = Attribute(np.asarray(opened.seeds.inputs), request.groups)
    fresh = fresh_seeds(opened, request)
    judging = _Judging(opened, attribute, split_seeds(labels, rng), labels, fresh, request)
    judging.require_rates()
    return judging


def drawn_part(part: NDArray[np.int64], most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return positions drawn from a part of the seeds, ascending; all where they are few enough.

    Args:
        part: the positions, ascending.
        most: how many are drawn at most.
        rng: draws them.

    """
    return part if len(part) <= most else np.sort(rng.choice(part, most, replace=False))


def _known_labels(opened: OpenedPair, seeds: Seeds) -> Labels:
    classes = opened.panel.reading.decoders[Arm.TWIN].choices
    labels = np.full(len(seeds), -1) if seeds.labels is None else seeds.labels
    unknown = int((~is_labelled(labels, classes)).sum())
    if unknown:
        raise UserError(
            f"{opened.pair.name}: {unknown:,} of {len(seeds):,} seeds have no label, by which"
            " accuracy and fairness are judged: give `labels` beside them"
        )
    return labels


@dataclass(frozen=True)
class _Judging:
    """The rows of a repair, and what judges candidates by them.

    Attributes:
        opened: the pair and its devices.
        attribute: what is to decide less.
        split: the parts of the seeds.
        labels: labels of all seeds.
        fresh: labelled inputs that nobody chose; None for none.
        request: the settings.

    """

    opened: OpenedPair
    attribute: Attribute
    split: SeedSplit
    labels: Labels
    fresh: Seeds | None
    request: RepairRequest

    def outcome(self, progress: ReportProgress) -> RepairOutcome:
        """Make candidates, choose one and judge it."""
        before = read_model_file(self.opened.pair.compressed)
        contents, seconds = {_BEFORE: before}, {}
        makers = self._makers(before)
        for number, (name, make) in enumerate(makers.items()):
            progress("candidates", number, len(makers))
            begun = monotonic()
            contents[name] = make(partial(progress, name))
            seconds[name] = round(monotonic() - begun, 3)
        progress("candidates", len(makers), len(makers))
        rows = {name: self._row(name, content) for name, content in contents.items()}
        rows[MEAN_OF_BOTH] = self._row(MEAN_OF_BOTH, before, both=True)
        chosen = self._chosen(rows)
        written, why = self._verdict(contents, chosen)
        devices = self.opened.devices
        made = FairnessRepair(
            columns=self.attribute.columns,
            rows=tuple(rows.values()),
            devices=tuple(self._on(device, contents[chosen]) for device in devices)
            if written
            else (),
        )
        tried = tuple(
            TriedCandidate(name=name, seconds=took, bytes=len(contents[name]))
            for name, took in seconds.items()
        )
        document = self._document(tried, made, chosen if written else None, why)
        repaired = RepairCandidate(chosen, contents[chosen], None) if written else None
        return RepairOutcome(document, repaired)

    def require_rates(self) -> None:
        """Refuse parts of the seeds, and rows of `--test`, by which candidates are not judged."""
        parts = {"a group of the seeds that choose": self._choosing}
        parts["a group of the seeds that judge"] = self._judging
        if self._fresh is not None:
            self.attribute.require_known(self._fresh[0])
            parts["--test: a group"] = self._fresh
        for of, (inputs, labels) in parts.items():
            require_rates(of, labels, self.attribute.first(inputs), self._favourable)

    def _makers(self, content: bytes) -> dict[str, _Make]:
        """Return what makes each candidate, by its name."""
        fit = drawn_part(self.split.fit, _MOST_ROWS, np.random.default_rng(self.request.rng_seed))
        table = TuningRows(np.asarray(self.opened.seeds.inputs)[fit], self.attribute, self._encoded)
        makers: dict[str, _Make] = {
            f"fmt-{'both' if both else 'one'}-{steps}": partial(
                self._fitted, content, table, both, steps
            )
            for both in (False, True)
            for steps in _STEPS
        }
        rng = np.random.default_rng(self.request.rng_seed)
        return {**makers, _DISTILLED: partial(distil_mean, content, table, rng)}

    def _fitted(
        self, content: bytes, table: TuningRows, both: bool, steps: int, told: StepProgress
    ) -> bytes:
        rng, percent = np.random.default_rng(self.request.rng_seed), self.request.slice
        return fit_fmt(
            content, table, both=both, steps=steps, percent=percent, rng=rng, progress=told
        )

    def _encoded(self, inputs: NDArray[np.generic]) -> NDArray[np.generic]:
        some = self.opened.seeds.seed_ids[0]
        return self.opened.panel.rows(Arm.TWIN, inputs, [some] * len(inputs))

    def _row(self, name: str, content: bytes, *, both: bool = False) -> FairnessRow:
        """Return the figures of a model on the host, or of its two answers' mean."""
        with open_candidate(content, self.opened) as model:
            choose, judge, fresh = (
                None if part is None else self._fairness(model, part, both=both)
                for part in (self._choosing, self._judging, self._fresh)
            )
        assert choose is not None  # noqa: S101 - fresh alone may be
        assert judge is not None  # noqa: S101
        return FairnessRow(name=name, choose=choose, judge=judge, fresh=fresh)

    @property
    def _choosing(self) -> _Rows:
        return self._seeds_at(np.concatenate([self.split.fit, self.split.choose]))

    @property
    def _judging(self) -> _Rows:
        return self._seeds_at(self.split.judge)

    @property
    def _fresh(self) -> _Rows | None:
        if self.fresh is None:
            return None
        return np.asarray(self.fresh.inputs), _known_labels(self.opened, self.fresh)

    @property
    def _held_out(self) -> _Rows:
        parts = [self._judging, *([] if self._fresh is None else [self._fresh])]
        inputs, labels = zip(*parts, strict=True)
        return np.concatenate(inputs), np.concatenate(labels)

    def _seeds_at(self, part: NDArray[np.int64]) -> _Rows:
        return np.asarray(self.opened.seeds.inputs)[part], self.labels[part]

    def _fairness(self, model: CandidateModel, rows: _Rows, *, both: bool = False) -> Fairness:
        inputs, labels = rows
        decisions = self._decisions(model, inputs, both=both)
        return fairness(decisions, labels, self.attribute.first(inputs), self._favourable)

    def _decisions(
        self, model: CandidateModel, inputs: NDArray[np.generic], *, both: bool = False
    ) -> Labels:
        """Return what a model decides, or what the mean of its two answers does."""
        ids = [self.opened.seeds.seed_ids[0]] * len(inputs)
        answers = model.answers(inputs, ids)
        if not both:
            return np.array(
                [-1 if answer.decision is None else answer.decision for answer in answers]
            )
        others = model.answers(self.attribute.flipped(inputs), ids)
        means = [
            answer.probabilities + two.probabilities
            for answer, two in zip(answers, others, strict=True)
        ]
        return np.asarray(np.stack(means).argmax(axis=1))

    @property
    def _favourable(self) -> int:
        return self.opened.panel.reading.decoders[Arm.TWIN].choices - 1

    def _chosen(self, rows: Mapping[str, FairnessRow]) -> str:
        """Return the candidate with the least bias on the seeds that choose.

        The plain one is taken where it does nearly as well, and a plain one may be taken.
        """
        least = rows[_BEFORE].choose.accuracy - _MOST_LOST_CHOSEN
        biases = {
            name: row.choose.bias
            for name, row in rows.items()
            if name.startswith("fmt") and row.choose.accuracy >= least
        }
        best = min(biases, key=biases.__getitem__, default=_BEFORE)
        plain = rows[_DISTILLED].choose
        if self.request.method == "auto" and plain.accuracy >= least:
            return _DISTILLED if plain.bias <= rows[best].choose.bias + _AS_WELL else best
        return best

    def _verdict(self, contents: Mapping[str, bytes], chosen: str) -> tuple[bool, str]:
        if chosen == _BEFORE:
            return False, "every candidate loses more than half a point on the seeds that choose"
        inputs, labels = self._held_out
        first, decisions = self.attribute.first(inputs), []
        for name in (_BEFORE, chosen):
            with open_candidate(contents[name], self.opened) as model:
                decisions.append(self._decisions(model, inputs))
        before, after = (
            fairness(decision, labels, first, self._favourable) for decision in decisions
        )
        said = (
            f"on {after.rows:,} held-out rows AAOD is {after.aaod:.3f} instead of"
            f" {before.aaod:.3f}, EOD {after.eod:+.3f} instead of {before.eod:+.3f}, and accuracy"
            f" {after.accuracy:.2%} instead of {before.accuracy:.2%}"
        )
        if after.accuracy < before.accuracy - MOST_LOST:
            return False, f"{chosen} loses more than a point of accuracy: {said}"
        rng = np.random.default_rng(self.request.rng_seed)
        if falls_surely(decisions, labels, first, self._favourable, rng):
            return True, said
        return False, f"{chosen} does not surely lessen the bias: {said}"

    def _on(self, device: Device, content: bytes) -> FairnessOnDevice:
        with opened_on(device, content, self.opened) as (_, there):
            found = self._fairness(there, self._judging)
        return FairnessOnDevice(device=device.profile.name, judge=found)

    def _document(
        self, tried: tuple[TriedCandidate, ...], made: FairnessRepair, chosen: str | None, why: str
    ) -> RepairDocument:
        pair = self.opened.pair
        return RepairDocument(
            edgeflare=__version__,
            pair=PairToRepair(
                name=pair.name, fingerprint=pair.fingerprint(), sha256=pair.model_hashes()
            ),
            run=None,
            devices=tuple(
                RunDevice(name=device.profile.name, provenance=device.provenance)
                for device in self.opened.devices
            ),
            classes=tuple(pair.classes),
            request=self.request,
            seeds=self.split.sizes,
            residual=None,
            candidates=tried,
            front=(),
            chosen=chosen,
            fairness=made,
            written=chosen is not None,
            why=why,
        )
