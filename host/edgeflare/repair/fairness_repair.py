"""The repair of a classifier of table rows whose decisions depend on an attribute.

Seeds are divided as those of every repair: candidates are tuned with three fifths, without their
labels, these and another fifth choose by labels, and the last fifth judges, with the inputs of
`--test`. All figures are of what the runtime computes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.core.query import Arm
from edgeflare.devices.device import Device
from edgeflare.devices.profile import Profile
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
from edgeflare.repair.judging.judgement_inputs import (
    FRESH,
    SeedSplit,
    decisions,
    split_seeds,
    true_labels,
)
from edgeflare.repair.labelled_repair import (
    BEFORE,
    CHOOSE,
    JUDGE,
    MOST_LOST,
    MOST_LOST_CHOSEN,
    LabelledInputs,
    any_seed_ids,
    labelled_document,
    labelled_parts,
    made_candidates,
)
from edgeflare.repair.post_training.fmt import FMT, TuningRows, distil_mean
from edgeflare.repair.repair_candidate import RepairCandidate, ReportProgress, StepProgress
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.repair.repair_requirements import require_seeds
from edgeflare.repair.repair_run import RepairOutcome, repair_plan

_MOST_ROWS = 20_000
"""Rows to tune with, at most."""

_AS_WELL = 0.01
"""How much more bias the plain candidate may have and still be taken, since it is simpler."""

_DISTILLED = "distilled-mean"
_FMT = "fmt"
_STEPS = (200, 600, 1800)

_Make = Callable[[StepProgress], bytes]

_Decide = Callable[[CandidateModel, NDArray[np.generic]], Labels]
"""Returns a decision about each input."""


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
    labels = true_labels(opened, opened.seeds)
    attribute = Attribute(np.asarray(opened.seeds.inputs), request.groups)
    split = split_seeds(labels, np.random.default_rng(request.rng_seed))
    places = {CHOOSE: np.concatenate([split.fit, split.choose]), JUDGE: split.judge}
    rows = labelled_parts(opened, request, labels, places)
    judging = _Judging(opened, attribute, split, rows, request)
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


@dataclass(frozen=True)
class _Judging:
    """The rows of a repair, and what judges candidates by them.

    Attributes:
        opened: the pair and its devices.
        attribute: what is to decide less.
        split: the parts of the seeds.
        rows: those that choose, those that judge and those of `--test`, if any, by part.
        request: the settings.

    """

    opened: OpenedPair
    attribute: Attribute
    split: SeedSplit
    rows: Mapping[str, LabelledInputs]
    request: RepairRequest

    def outcome(self, progress: ReportProgress) -> RepairOutcome:
        """Make candidates, choose one and judge it."""
        before = read_model_file(self.opened.pair.compressed)
        made, tried = made_candidates(self._makers(before), progress)
        contents = {BEFORE: before, **made}
        decided = {name: self._decided(made, self._decisions) for name, made in contents.items()}
        decided[MEAN_OF_BOTH] = self._decided(before, self._mean_decisions)
        rows = {name: self._row(name, of_parts) for name, of_parts in decided.items()}
        chosen = chosen_candidate(rows, plain=self.request.method == "auto")
        written, why = self._verdict(decided, chosen)
        devices = self.opened.devices if written else ()
        repair = FairnessRepair(
            columns=self.attribute.columns,
            rows=tuple(rows.values()),
            devices=tuple(self._on(device, contents[chosen]) for device in devices),
        )
        document = labelled_document(
            self.opened, self.request, self.split, tried, chosen if written else None, why
        )
        document = structs.replace(document, fairness=repair)
        repaired = RepairCandidate(chosen, contents[chosen], None) if written else None
        return RepairOutcome(document, repaired)

    def require_rates(self) -> None:
        """Refuse parts of the seeds, and rows of `--test`, by which candidates are not judged."""
        for part, (inputs, labels) in self.rows.items():
            if part == FRESH:
                self.attribute.require_known(inputs)
            of = "--test: a group" if part == FRESH else f"a group of the seeds that {part}"
            require_rates(of, labels, self.attribute.first(inputs), self._favourable)

    def _makers(self, content: bytes) -> dict[str, _Make]:
        """Return what makes each candidate, by its name."""
        fit = drawn_part(self.split.fit, _MOST_ROWS, self._new_rng())
        table = TuningRows(np.asarray(self.opened.seeds.inputs)[fit], self.attribute, self._encoded)

        @cache
        def prepared(both: bool) -> FMT:
            return FMT(content, table, both=both, percent=self.request.slice, rng=self._new_rng())

        makers: dict[str, _Make] = {
            f"{_FMT}-{'both' if both else 'one'}-{steps}": partial(
                lambda both, steps, told: prepared(both).tuned(steps, told), both, steps
            )
            for both in (False, True)
            for steps in _STEPS
        }
        return {**makers, _DISTILLED: partial(distil_mean, content, table, self._new_rng())}

    def _new_rng(self) -> np.random.Generator:
        """Return a generator of the repair's seed: each candidate has the same draws of its own."""
        return np.random.default_rng(self.request.rng_seed)

    def _encoded(self, inputs: NDArray[np.generic]) -> NDArray[np.generic]:
        return self.opened.panel.rows(Arm.TWIN, inputs, any_seed_ids(self.opened, len(inputs)))

    def _decided(self, content: bytes, decide: _Decide) -> dict[str, Labels]:
        """Return what a model decides on the host, by part of the rows."""
        with open_candidate(content, self.opened) as model:
            return {part: decide(model, inputs) for part, (inputs, _) in self.rows.items()}

    def _decisions(self, model: CandidateModel, inputs: NDArray[np.generic]) -> Labels:
        return decisions(model.answers(inputs, any_seed_ids(self.opened, len(inputs))))

    def _mean_decisions(self, model: CandidateModel, inputs: NDArray[np.generic]) -> Labels:
        """Return what the mean of a model's two answers decides."""
        sides = inputs, self.attribute.flipped(inputs)
        ids = any_seed_ids(self.opened, len(inputs))
        pairs = zip(*(model.answers(side, ids) for side in sides), strict=True)
        means = [one.probabilities + other.probabilities for one, other in pairs]
        return np.asarray(np.stack(means).argmax(axis=1))

    def _row(self, name: str, decided: Mapping[str, Labels]) -> FairnessRow:
        found = {part: self._fairness(part, labels) for part, labels in decided.items()}
        return FairnessRow(
            name=name, choose=found[CHOOSE], judge=found[JUDGE], fresh=found.get(FRESH)
        )

    def _fairness(self, part: str, decided: Labels) -> Fairness:
        inputs, labels = self.rows[part]
        return fairness(decided, labels, self.attribute.first(inputs), self._favourable)

    @property
    def _favourable(self) -> int:
        return self.opened.panel.reading.decoders[Arm.TWIN].choices - 1

    def _verdict(
        self, decided: Mapping[str, Mapping[str, Labels]], chosen: str
    ) -> tuple[bool, str]:
        """Say whether the chosen candidate is to be written, by rows that did not choose."""
        if chosen == BEFORE:
            return False, "every candidate loses more than half a point on the seeds that choose"
        held_out = [part for part in self.rows if part != CHOOSE]
        inputs, labels = map(
            np.concatenate, zip(*(self.rows[part] for part in held_out), strict=True)
        )
        sides = [
            np.concatenate([decided[name][part] for part in held_out]) for name in (BEFORE, chosen)
        ]
        judged_by = labels, self.attribute.first(inputs), self._favourable
        before, after = (fairness(side, *judged_by) for side in sides)
        said = (
            f"on {after.rows:,} held-out rows AAOD is {after.aaod:.3f} instead of"
            f" {before.aaod:.3f}, EOD {after.eod:+.3f} instead of {before.eod:+.3f}, and accuracy"
            f" {after.accuracy:.2%} instead of {before.accuracy:.2%}"
        )
        if after.accuracy < before.accuracy - MOST_LOST:
            return False, f"{chosen} loses more than a point of accuracy: {said}"
        if falls_surely(sides, *judged_by, self._new_rng()):
            return True, said
        return False, f"{chosen} does not surely lessen the bias: {said}"

    def _on(self, device: Device, content: bytes) -> FairnessOnDevice:
        with opened_on(device, content, self.opened) as (_, there):
            decided = self._decisions(there, self.rows[JUDGE][0])
        return FairnessOnDevice(device=device.profile.name, judge=self._fairness(JUDGE, decided))


def chosen_candidate(rows: Mapping[str, FairnessRow], *, plain: bool) -> str:
    """Return the candidate with the least bias on the seeds that choose; "before" for none.

    Those that lose more than half a point of accuracy there do not count.

    Args:
        rows: figures of the model before and of the candidates, by name.
        plain: whether "distilled-mean" is taken where it has at most .01 more bias than the best of
            FMT, since it is simpler.

    """
    least = rows[BEFORE].choose.accuracy - MOST_LOST_CHOSEN
    biases = {
        name: row.choose.bias
        for name, row in rows.items()
        if name.startswith(_FMT) and row.choose.accuracy >= least
    }
    best = min(biases, key=biases.__getitem__, default=BEFORE)
    distilled = rows[_DISTILLED].choose
    if not plain or distilled.accuracy < least:
        return best
    return _DISTILLED if distilled.bias <= rows[best].choose.bias + _AS_WELL else best
