"""Cross-validation of all repairers: five folds by seed, five times, on held-out inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.repair.shift_details import (
    ABSTAINING,
    MIXTURE_ONLY,
    PERCEPTRON,
    REPAIRERS,
    SECOND,
    SHIFTS,
    JudgedRepairer,
)
from edgeflare.repair.shifts.fold_assignment import FOLDS, SPLITS
from edgeflare.repair.shifts.mixture import count_mixture
from edgeflare.repair.shifts.perceptron import second_class, train, train_abstaining
from edgeflare.repair.shifts.repair_samples import Samples
from edgeflare.repair.shifts.shift_effects import ShiftEffects, fold_rows
from edgeflare.repair.shifts.shift_fitting import fit
from edgeflare.repair.shifts.shifts import Shifts
from edgeflare.repair.shifts.training_inputs import Repair, TrainingInputs


@dataclass(slots=True)
class _ChangeCounts:
    """In how many of the splits the repairer changed whether each input deviates."""

    triggers: NDArray[np.float64]
    agreeing: NDArray[np.float64]
    seeds: NDArray[np.float64]
    sampled: NDArray[np.float64]


def evaluate(
    inputs: TrainingInputs, effects: ShiftEffects, progress: Callable[[int, int], None]
) -> Mapping[str, JudgedRepairer]:
    """Judge the paper's perceptron, the same with abstention, the second class, and shifts.

    Shifts are judged twice: fitted to the mixture alone, and also to the sampled inputs, which is
    the default.

    Args:
        inputs: the inputs.
        effects: what shifts do to these inputs, as `shift_effects` returns it.
        progress: is called with the number of folds that are done, and that of all.

    """
    counts = {name: _no_changes(inputs) for name in REPAIRERS}
    progress(0, SPLITS * FOLDS)
    for number, (split, fold) in enumerate(_every_fold(), 1):
        folds = inputs.folds(split)
        training = inputs.part(folds, lambda one: one != fold)  # noqa: B023 - called at once
        rows = fold_rows(folds)
        shifts = fit(effects, rows, fold).shifts
        mixture_only = fit(effects.mixture_only, rows[effects.mixed], fold).shifts
        repairs: dict[str, Repair] = {
            PERCEPTRON: train(training, split),
            ABSTAINING: train_abstaining(training, split),
            SECOND: second_class,
            MIXTURE_ONLY: labels_of(mixture_only),
            SHIFTS: labels_of(shifts),
        }
        for name, repair in repairs.items():
            changed = counts[name]
            _count_changes(repair, inputs.triggers, folds.triggers == fold, changed.triggers)
            _count_changes(repair, inputs.agreeing, folds.agreeing == fold, changed.agreeing)
            _count_changes(repair, inputs.seeds, folds.seeds == fold, changed.seeds)
            _count_changes(repair, inputs.sampled, folds.sampled == fold, changed.sampled)
        progress(number, SPLITS * FOLDS)
    return {name: _judged(inputs, changed) for name, changed in counts.items()}


def labels_of(shifts: Shifts) -> Repair:
    """Return a repairer that applies shifts."""
    return lambda samples: shifts.apply(samples.raw, samples.tensor).argmax(axis=1)


def _every_fold() -> Iterator[tuple[int, int]]:
    return ((split, fold) for split in range(SPLITS) for fold in range(FOLDS))


def _no_changes(inputs: TrainingInputs) -> _ChangeCounts:
    parts = (inputs.triggers, inputs.agreeing, inputs.seeds, inputs.sampled)
    return _ChangeCounts(*(np.zeros(len(part)) for part in parts))


def _count_changes(
    repair: Repair, samples: Samples, rows: NDArray[np.bool_], changed: NDArray[np.float64]
) -> None:
    """Add 1 where a repairer makes an input deviate that did not, or the reverse."""
    held_out = samples.take(rows)
    changed[rows] += (repair(held_out) != held_out.originals) != held_out.deviating


def _judged(inputs: TrainingInputs, counts: _ChangeCounts) -> JudgedRepairer:
    ones = np.ones(len(inputs.triggers))
    mixture_counts = count_mixture(
        np.unique(inputs.seeds.seed_ids),
        (
            (inputs.triggers.seed_ids, ones, counts.triggers / SPLITS),
            (inputs.agreeing.seed_ids, inputs.weights(), counts.agreeing / SPLITS),
            (inputs.seeds.seed_ids, ones, counts.seeds / SPLITS),
        ),
    )
    before = inputs.sampled.deviating
    changed = counts.sampled / SPLITS
    unled_mended = float(changed[before].sum())
    unled_broken = float(changed[~before].sum())
    after = float(before.sum()) - unled_mended + unled_broken
    repaired, induced, inducing = mixture_counts.ratios.tolist()
    in_fold = len(ones) / FOLDS
    return JudgedRepairer(
        repair_count=repaired * in_fold,
        repair_ratio=repaired,
        inducing_count=inducing * in_fold,
        inducing_ratio=inducing,
        improvement_count=(repaired - inducing) * in_fold,
        improvement_ratio=repaired - inducing,
        induced_agreeing=induced,
        unled_mended=unled_mended,
        unled_broken=unled_broken,
        unled_ratio=after / float(before.sum()) if before.any() else None,
        net=mixture_counts.net(inputs.mixture),
    )
