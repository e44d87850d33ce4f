"""Cross-validation of all repairers: five folds by seed, five times, on held-out inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

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
    Mixture,
)
from edgeflare.repair.shifts.baselines.perceptron import second_class, train, train_abstaining
from edgeflare.repair.shifts.repair_samples import FOLDS, SPLITS, Labels, Samples
from edgeflare.repair.shifts.shift_fitting import ShiftEffects, fit, fold_rows
from edgeflare.repair.shifts.shifts import Shifts
from edgeflare.repair.shifts.training_inputs import Repair, TrainingInputs
from edgeflare.statistics.bootstrap import Estimate, percentile_estimate, resampled_means


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
    parts = (inputs.triggers, inputs.agreeing, inputs.seeds, inputs.sampled)
    counts = {name: _ChangeCounts(*(np.zeros(len(one)) for one in parts)) for name in REPAIRERS}
    progress(0, SPLITS * FOLDS)
    for number, (split, fold) in enumerate(product(range(SPLITS), range(FOLDS)), 1):
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


@dataclass(frozen=True, slots=True)
class MixtureCounts:
    """How many inputs of the three kinds a repairer changed, seed by seed.

    Attributes:
        counts: (3, seeds): how many there are of each seed: triggers, agreeing inputs by weight,
            seeds.
        changed: (3, seeds): how many of them are repaired, or made to deviate.

    """

    counts: NDArray[np.float64]
    changed: NDArray[np.float64]

    @property
    def ratios(self) -> NDArray[np.float64]:
        """(3,) the shares of triggers repaired, and of agreeing inputs and of seeds induced."""
        ratios: NDArray[np.float64] = self.changed.sum(1) / np.maximum(self.counts.sum(1), 1e-12)
        return ratios

    def net(self, mixture: Mixture) -> Estimate:
        """Return by how much deviations fall, as a share of the mixture.

        The interval is a 95 % bootstrap interval over the seeds, each drawn with all that was made
        from it.
        """
        changed, counts = resampled_means(self.changed), resampled_means(self.counts)
        signs = np.array([mixture.triggers, -mixture.agreeing, -mixture.seeds])
        drawn = changed / np.maximum(counts, 1e-12) @ signs
        return percentile_estimate(float(signs @ self.ratios), drawn)


def count_mixture(
    seed_ids: Labels,
    parts: tuple[
        tuple[Labels, NDArray[np.float64], NDArray[np.float64]],
        tuple[Labels, NDArray[np.float64], NDArray[np.float64]],
        tuple[Labels, NDArray[np.float64], NDArray[np.float64]],
    ],
) -> MixtureCounts:
    """Sum the changed labels of each kind of inputs, seed by seed.

    Args:
        seed_ids: (seeds,), each once, ascending.
        parts: three parts, of triggers, agreeing inputs and seeds: seeds' ids, weights, and the
            share of the splits in which each was changed, from 0 to 1.

    """
    counts, changed = np.zeros((2, 3, len(seed_ids)))
    for row, (ids, weights, done) in enumerate(parts):
        places = np.searchsorted(seed_ids, ids)
        counts[row] = np.bincount(places, weights, len(seed_ids))
        changed[row] = np.bincount(places, weights * done, len(seed_ids))
    return MixtureCounts(counts, changed)
