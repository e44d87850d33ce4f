"""The repair of a classifier of table rows whose decisions depend on an attribute.

Seeds are divided as those of every repair: candidates are tuned with three fifths, without their
labels, these and another fifth choose by labels, and the last fifth judges, with the inputs of
`--test`. All figures are of what the runtime computes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, cached_property, partial

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from edgeflare.core.query import Arm
from edgeflare.models.model_file import read_model_file
from edgeflare.repair.judging.candidate_model import CandidateModel, open_candidate
from edgeflare.repair.judging.fairness import (
    Attribute,
    Fairness,
    Labels,
    fairness,
    falls_surely,
    require_rates,
)
from edgeflare.repair.judging.judgement_inputs import FRESH, decisions
from edgeflare.repair.labelled.labelled_repair import (
    MOST_LOST,
    MOST_LOST_CHOSEN,
    LabelledCandidate,
    LabelledRepair,
    each_made,
)
from edgeflare.repair.labelled_details import (
    BEFORE,
    CHOOSE,
    JUDGE,
    MEAN_OF_BOTH,
    FairnessOnDevice,
    FairnessRepair,
    FairnessRow,
)
from edgeflare.repair.post_training.fmt import FMT, TuningRows, distil_mean
from edgeflare.repair.repair_candidate import ReportProgress, StepProgress
from edgeflare.repair.repair_document import RepairDocument

_MOST_ROWS = 20_000
"""Rows to tune with, at most."""

_AS_WELL = 0.01
"""How much more bias the plain candidate may have and still be taken, since it is simpler."""

_DISTILLED = "distilled-mean"
_FMT = "fmt"
_STEPS = (200, 600, 1800)

_Decide = Callable[[CandidateModel, NDArray[np.generic]], Labels]
"""Returns a decision about each input."""


class FairnessTuning(LabelledRepair[Labels]):
    """The compressed model of a pair, tuned so that an attribute decides less.

    What is seen of a model are its decisions. Seeds are rows of a table, whose last class is the
    favourable one. The attribute has two combinations, and each part has of both groups some rows
    with that class and some without, or is refused.
    """

    @property
    def plan(self) -> str:
        """The column, and what is tried."""
        columns = ", ".join(map(str, self.request.groups))
        return f"Column {columns}: FMT and the mean of both answers, in place"

    @property
    def choosing(self) -> NDArray[np.int64]:
        """Positions of the seeds to tune with, and of those that choose."""
        return np.concatenate([self.split.fit, self.split.choose])

    def prepare(self) -> None:
        """Refuse parts of the seeds, and rows of `--test`, by which candidates are not judged."""
        for part, (inputs, labels) in self.parts.items():
            if part == FRESH:
                self._attribute.require_known(inputs)
            of = "--test: a group" if part == FRESH else f"a group of the seeds that {part}"
            require_rates(of, labels, self._attribute.first(inputs), self._favourable)

    def candidates(self, progress: ReportProgress) -> list[LabelledCandidate[Labels]]:
        """Make FMT's, and the one that learns the mean."""
        return [
            LabelledCandidate.in_place(tried, content, self._decided(content, self._decisions))
            for tried, content in each_made(self._makers(), progress)
        ]

    def before(self) -> dict[str, Labels]:
        """Return what the compressed model decides."""
        return self._decided(self._compressed, self._decisions)

    def choice(self, evidence: Mapping[str, Labels]) -> str | None:
        """Return the candidate with the least bias."""
        figures = {name: self._fairness(CHOOSE, decided) for name, decided in evidence.items()}
        return least_biased(figures, plain=self.request.method == "auto")

    def verdict(
        self, before: Mapping[str, Labels], after: Mapping[str, Labels], name: str
    ) -> tuple[bool, str]:
        """Say whether bias surely falls, and accuracy hardly."""
        inputs, labels = map(
            np.concatenate, zip(*(self.parts[part] for part in self.held_out), strict=True)
        )
        sides = [np.concatenate([of[part] for part in self.held_out]) for of in (before, after)]
        judged_by = labels, self._attribute.first(inputs), self._favourable
        old, new = (fairness(side, *judged_by) for side in sides)
        said = (
            f"on {new.rows:,} held-out rows AAOD is {new.aaod:.3f} instead of"
            f" {old.aaod:.3f}, EOD {new.eod:+.3f} instead of {old.eod:+.3f}, and accuracy"
            f" {new.accuracy:.2%} instead of {old.accuracy:.2%}"
        )
        if new.accuracy < old.accuracy - MOST_LOST:
            return False, f"{name} loses more than a point of accuracy: {said}"
        if falls_surely(sides, *judged_by, self.fitted_rng()):
            return True, said
        return False, f"{name} does not surely lessen the bias: {said}"

    def described(
        self,
        document: RepairDocument,
        evidence: Mapping[str, Mapping[str, Labels]],
        on_devices: Mapping[str, Labels],
    ) -> RepairDocument:
        """Return the document with the fairness of each, and of the mean of both answers."""
        mean = self._decided(self._compressed, self._mean_decisions)
        repair = FairnessRepair(
            columns=self._attribute.columns,
            rows=tuple(
                FairnessRow.of(name, {part: self._fairness(part, of[part]) for part in of})
                for name, of in {**evidence, MEAN_OF_BOTH: mean}.items()
            ),
            devices=tuple(
                FairnessOnDevice(device=device, judge=self._fairness(JUDGE, decided))
                for device, decided in on_devices.items()
            ),
        )
        return structs.replace(document, fairness=repair)

    def seen_on(self, device: CandidateModel, _on_host: Labels) -> Labels:
        """Return the decisions."""
        return self._decisions(device, self.parts[JUDGE][0])

    def lost(self, before: Labels, after: Labels) -> str | None:
        """Compare the bias, which is AAOD and the size of EOD together."""
        old, new = (self._fairness(JUDGE, decided).bias for decided in (before, after))
        said = f"AAOD and the size of EOD come to {new:.3f} instead of {old:.3f}"
        return said if new > old else None

    def _makers(self) -> dict[str, Callable[[StepProgress], bytes]]:
        """Return what makes each candidate, by its name."""
        content, rng = self._compressed, self.fitted_rng()
        fit = drawn_part(self.split.fit, _MOST_ROWS, rng)
        inputs = np.asarray(self.opened.seeds.inputs)[fit]
        table = TuningRows(inputs, self._attribute, self._encoded)

        @cache
        def prepared(both: bool) -> FMT:
            percent = self.request.slice_percent
            return FMT(content, table, both=both, percent=percent, rng=self.fitted_rng())

        makers: dict[str, Callable[[StepProgress], bytes]] = {
            f"{_FMT}-{'both' if both else 'one'}-{steps}": partial(
                lambda both, steps, told: prepared(both).tuned(steps, told), both, steps
            )
            for both in (False, True)
            for steps in _STEPS
        }
        return {**makers, _DISTILLED: partial(distil_mean, content, table, self.fitted_rng())}

    @property
    def _compressed(self) -> bytes:
        return read_model_file(self.pair.compressed)

    @cached_property
    def _attribute(self) -> Attribute:
        return Attribute(np.asarray(self.opened.seeds.inputs), self.request.groups)

    @property
    def _favourable(self) -> int:
        return self.opened.panel.reading.decoders[Arm.TWIN].choices - 1

    def _encoded(self, inputs: NDArray[np.generic]) -> NDArray[np.generic]:
        return self.opened.panel.rows(Arm.TWIN, inputs, self.ids(len(inputs)))

    def _decided(self, content: bytes, decide: _Decide) -> dict[str, Labels]:
        """Return what a model decides on the host, by part of the rows."""
        with open_candidate(content, self.opened) as model:
            return {part: decide(model, inputs) for part, (inputs, _) in self.parts.items()}

    def _decisions(self, model: CandidateModel, inputs: NDArray[np.generic]) -> Labels:
        return decisions(self.answers(model, inputs))

    def _mean_decisions(self, model: CandidateModel, inputs: NDArray[np.generic]) -> Labels:
        """Return what the mean of a model's two answers decides."""
        sides = inputs, self._attribute.flipped(inputs)
        pairs = zip(*(self.answers(model, side) for side in sides), strict=True)
        means = [one.probabilities + other.probabilities for one, other in pairs]
        return np.asarray(np.stack(means).argmax(axis=1))

    def _fairness(self, part: str, decided: Labels) -> Fairness:
        inputs, labels = self.parts[part]
        return fairness(decided, labels, self._attribute.first(inputs), self._favourable)


def least_biased(figures: Mapping[str, Fairness], *, plain: bool) -> str | None:
    """Return the candidate with the least bias; None where there is none.

    Those that lose more than half a point of accuracy do not count.

    Args:
        figures: those of the model before and of the candidates on the seeds that choose, by name.
        plain: whether "distilled-mean" is taken where it has at most .01 more bias than the best of
            FMT, since it is simpler.

    """
    least = figures[BEFORE].accuracy - MOST_LOST_CHOSEN
    biases = {
        name: of.bias
        for name, of in figures.items()
        if name.startswith(_FMT) and of.accuracy >= least
    }
    best = min(biases, key=biases.__getitem__, default=None)
    distilled = figures[_DISTILLED]
    if not plain or distilled.accuracy < least:
        return best
    of_best = figures[BEFORE if best is None else best].bias
    return _DISTILLED if distilled.bias <= of_best + _AS_WELL else best


def drawn_part(part: NDArray[np.int64], most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return positions drawn from a part of the seeds, ascending; all where they are few enough.

    Args:
        part: the positions, ascending.
        most: how many are drawn at most.
        rng: draws them.

    """
    return part if len(part) <= most else np.sort(rng.choice(part, most, replace=False))
