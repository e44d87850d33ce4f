"""Repairers on what they were not trained with: five folds, five times, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.bench.bench_statistics import Estimate
from edgeflare.repair.folds import FOLDS, SPLITS
from edgeflare.repair.mixture import count_mixture
from edgeflare.repair.perceptron import second_class, train, train_abstaining
from edgeflare.repair.repair_samples import Samples
from edgeflare.repair.shift_effects import ShiftEffects, fold_rows
from edgeflare.repair.shift_fitting import fit
from edgeflare.repair.shifts import Shifts
from edgeflare.repair.training_inputs import Repair, TrainingInputs

PERCEPTRON = "perceptron"
ABSTAINING = "perceptron-abstaining"
SECOND = "second-class"
RECKLESS = "shifts-mixture-only"
SHIFTS = "shifts"

REPAIRERS = (PERCEPTRON, ABSTAINING, SECOND, RECKLESS, SHIFTS)


@dataclass(frozen=True, slots=True)
class JudgedRepairer:
    """What a repairer did to inputs that it was not trained with, on the mean over all splits.

    Counts are those of one fold, as the paper's Table 7 has them (§5.5.2).

    Attributes:
        repair_count: triggers that no longer deviate.
        repair_ratio: their share of the triggers.
        inducing_count: seeds that begin to deviate.
        inducing_ratio: their share of the seeds.
        improvement_count: deviations before, less those after.
        improvement_ratio: its share of the triggers; negative where it made things worse.
        induced_agreeing: share of the matched agreeing inputs that begin to deviate.
        unled_mended: near-boundary inputs as they come that no longer deviate.
        unled_broken: those of them that begin to.
        unled_ratio: deviations among them, after for each before; None where there were none.
        net: by how much deviations fall over the mixture, as a share of it.

    """

    repair_count: float
    repair_ratio: float
    inducing_count: float
    inducing_ratio: float
    improvement_count: float
    improvement_ratio: float
    induced_agreeing: float
    unled_mended: float
    unled_broken: float
    unled_ratio: float | None
    net: Estimate


@dataclass(slots=True)
class _Sheet:
    """How often each input was changed, over the splits."""

    triggers: NDArray[np.float64]
    agreeing: NDArray[np.float64]
    seeds: NDArray[np.float64]
    unled: NDArray[np.float64]


def evaluate(
    material: TrainingInputs, gains: ShiftEffects, tell: Callable[[int, int], None]
) -> Mapping[str, JudgedRepairer]:
    """Judge the paper's perceptron, the same with abstention, the second class, and shifts.

    Shifts twice: fitted to the mixture alone, and to inputs as they come too, which is the default.

    Args:
        material: the inputs.
        gains: of these, as `gains_of` returns them.
        tell: is told how many of the folds are done, and how many there are.

    """
    sheets = {name: _sheet(material) for name in REPAIRERS}
    tell(0, SPLITS * FOLDS)
    for number, (split, fold) in enumerate(_every_fold(), 1):
        folds = material.folds(split)
        training = material.part(folds, lambda one: one != fold)  # noqa: B023 - called at once
        rows = fold_rows(folds)
        shifts = fit(gains, rows, fold).shifts
        reckless = fit(gains.mixture_only, rows[gains.mixed], fold).shifts
        repairs: dict[str, Repair] = {
            PERCEPTRON: train(training, split),
            ABSTAINING: train_abstaining(training, split),
            SECOND: second_class,
            RECKLESS: labels_of(reckless),
            SHIFTS: labels_of(shifts),
        }
        for name, repair in repairs.items():
            sheet = sheets[name]
            _judge(repair, material.triggers, folds.triggers == fold, sheet.triggers)
            _judge(repair, material.agreeing, folds.agreeing == fold, sheet.agreeing)
            _judge(repair, material.seeds, folds.seeds == fold, sheet.seeds)
            _judge(repair, material.unled, folds.unled == fold, sheet.unled)
        tell(number, SPLITS * FOLDS)
    return {name: _column(material, sheet) for name, sheet in sheets.items()}


def labels_of(shifts: Shifts) -> Repair:
    """Return shifts as a repairer."""
    return lambda samples: shifts.apply(samples.raw, samples.tensor).argmax(axis=1)


def _every_fold() -> Iterator[tuple[int, int]]:
    return ((split, fold) for split in range(SPLITS) for fold in range(FOLDS))


def _sheet(material: TrainingInputs) -> _Sheet:
    parts = (material.triggers, material.agreeing, material.seeds, material.unled)
    return _Sheet(*(np.zeros(len(part)) for part in parts))


def _judge(
    repair: Repair, samples: Samples, rows: NDArray[np.bool_], changed: NDArray[np.float64]
) -> None:
    """Note where a repairer's label makes an input deviate that did not, or the reverse."""
    there = samples.take(rows)
    changed[rows] += (repair(there) != there.originals) != there.deviating


def _column(material: TrainingInputs, sheet: _Sheet) -> JudgedRepairer:
    ones = np.ones(len(material.triggers))
    told = count_mixture(
        np.unique(material.seeds.seed_ids),
        (
            (material.triggers.seed_ids, ones, sheet.triggers / SPLITS),
            (material.agreeing.seed_ids, material.weights(), sheet.agreeing / SPLITS),
            (material.seeds.seed_ids, ones, sheet.seeds / SPLITS),
        ),
    )
    before = material.unled.deviating
    changed = sheet.unled / SPLITS
    mended, broken = float(changed[before].sum()), float(changed[~before].sum())
    after = float(before.sum()) - mended + broken
    repaired, induced, inducing = told.ratios.tolist()
    each = len(ones) / FOLDS
    return JudgedRepairer(
        repair_count=repaired * each,
        repair_ratio=repaired,
        inducing_count=inducing * each,
        inducing_ratio=inducing,
        improvement_count=(repaired - inducing) * each,
        improvement_ratio=repaired - inducing,
        induced_agreeing=induced,
        unled_mended=mended,
        unled_broken=broken,
        unled_ratio=after / float(before.sum()) if before.any() else None,
        net=told.net(material.mixture),
    )
