"""The candidate of a repair by shifts: from a run's seeds and triggers to a repaired model.

Shifts are fitted to the seeds to fit with, and to what was made of them. Their cross-validation
stays inside of that part too: it says whether there is a candidate at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.models.model_file import read_model_file
from edgeflare.repair.candidate_details import CandidateDetails
from edgeflare.repair.repair_candidate import (
    CandidatePlan,
    NoCandidate,
    RepairCandidate,
    StepProgress,
)
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.repair.shift_details import (
    ABSTAINING,
    MIXTURE_ONLY,
    PERCEPTRON,
    REPAIRERS,
    SECOND,
    SHIFTS,
    FoundShifts,
    JudgedRepairer,
    MovedBoundary,
    ShiftDetails,
    ShiftInputs,
    ShiftQueries,
    StandaloneShifts,
)
from edgeflare.repair.shifts.baselines.perceptron import (
    require_scikit_learn,
    second_class,
    train,
    train_abstaining,
)
from edgeflare.repair.shifts.boundary_set import ROUNDS, BoundarySet, gather
from edgeflare.repair.shifts.model_to_repair import read_model_to_repair, require_probabilities
from edgeflare.repair.shifts.repair_samples import FOLDS, SPLITS, Labels, Samples
from edgeflare.repair.shifts.run_to_repair import (
    RunInputs,
    RunToRepair,
    evaluate_run_inputs,
    run_to_repair,
)
from edgeflare.repair.shifts.shift_fitting import (
    Fitted,
    ShiftEffects,
    fit,
    fold_rows,
    shift_effects,
)
from edgeflare.repair.shifts.shifts import STEP, Shifts, append, standalone
from edgeflare.repair.shifts.training_inputs import (
    Repair,
    TrainingInputs,
    matched_share,
    training_inputs,
)
from edgeflare.replay.past_run import PastRun
from edgeflare.statistics.bootstrap import Estimate, percentile_estimate, resampled_means

_STANDALONE = "shifts.tflite"
"""The shifts without the model, for one that cannot be edited."""

Rows = NDArray[np.int64]


def shift_plan(
    past: PastRun, opened: OpenedPair, rows: Rows, request: RepairRequest
) -> CandidatePlan:
    """Return the plan of the candidate by shifts.

    Args:
        past: the run.
        opened: pair of the run with all seeds that it had, and the devices to ask.
        rows: positions of the seeds to fit with.
        request: the settings.

    """

    def make(progress: StepProgress) -> Sequence[RepairCandidate]:
        run = run_to_repair(past, opened, rows, request.rng_seed)
        return (_candidate(run, request, progress),)

    return CandidatePlan(SHIFTS, "shifts", make)


def _candidate(run: RunToRepair, request: RepairRequest, progress: StepProgress) -> RepairCandidate:
    """Fit shifts to a run, and append them to its compressed model.

    Raises:
        UserError: the run has too few triggers that still deviate, or its models cannot be
            repaired by shifts.
        NoCandidate: shifts do not surely gain on inputs that they were not fitted to.

    """
    require_scikit_learn()
    path = run.opened.pair.compressed
    content = read_model_file(path)
    model = read_model_to_repair(content, str(path))
    require_probabilities(run.decoder, str(path))
    run_inputs = evaluate_run_inputs(run)
    rounds = ROUNDS if request.rounds is None else request.rounds
    boundary_set = gather(run, run_inputs, rounds, progress)
    training = training_inputs(run_inputs, boundary_set)
    effects = shift_effects(training)
    repairers = evaluate(training, effects, progress)
    fitted = fit(effects, fold_rows(training.folds(0)))
    details = ShiftDetails(
        inputs=_inputs(run_inputs, boundary_set, training, rounds),
        queries=ShiftQueries(
            2 * (len(run_inputs.triggers) + run_inputs.not_reproduced), boundary_set.queries
        ),
        folds=FOLDS,
        splits=SPLITS,
        repairers=repairers,
        ceiling=effects.ceiling,
        shifts=_shifts(fitted),
        alone=None,
    )
    why = why_none(repairers[SHIFTS], fitted)
    if why is not None:
        raise NoCandidate(why, CandidateDetails(shifts=details))
    alone = standalone(fitted.shifts, model)
    stored = StandaloneShifts(_STANDALONE, hashlib.sha256(alone).hexdigest(), len(alone))
    return RepairCandidate(
        SHIFTS,
        append(content, fitted.shifts, model, str(path)),
        None,
        CandidateDetails(shifts=structs.replace(details, alone=stored)),
        {_STANDALONE: alone},
    )


def why_none(judged: JudgedRepairer, fitted: Fitted) -> str | None:
    """Return why shifts are no candidate; None where they are one.

    Args:
        judged: shifts on held-out folds of the inputs that they are fitted to.
        fitted: the same, fitted to all of these inputs.

    """
    net = judged.net
    if not fitted.pairs:
        return "no shift of a boundary gains anything on inputs that it was not fitted to"
    if net.low <= 0.0:
        return (
            f"the net on held-out folds is not surely above zero ({100 * net.value:+.1f} points, 95"
            f" % interval {100 * net.low:+.1f} to {100 * net.high:+.1f} points)"
        )
    if judged.unguided_broken > judged.unguided_mended:
        return (
            f"of inputs as they come on held-out folds {judged.unguided_broken:.1f} begin to"
            f" deviate, and {judged.unguided_mended:.1f} no longer do"
        )
    return None


def _inputs(
    run_inputs: RunInputs, boundary_set: BoundarySet, training: TrainingInputs, rounds: int
) -> ShiftInputs:
    sampled = boundary_set.sampled
    return ShiftInputs(
        triggers=len(run_inputs.triggers),
        seeds=len(run_inputs.seeds),
        not_reproduced=run_inputs.not_reproduced,
        rounds=rounds,
        near_boundary_agreeing=len(training.agreeing),
        near_boundary_deviating=len(training.near_deviating),
        unguided=len(sampled),
        unguided_deviating=int(sampled.deviating.sum()),
        matched_share=matched_share(run_inputs.triggers, training.weights()),
    )


def _shifts(fitted: Fitted) -> FoundShifts:
    steps = fitted.shifts.steps
    return FoundShifts(
        strength=fitted.strength,
        step=STEP,
        pairs=tuple(
            MovedBoundary((a, b), int(steps[a, b]))
            for a in range(len(steps))
            for b in range(a + 1, len(steps))
            if steps[a, b]
        ),
    )


_Changes = dict[str, NDArray[np.float64]]
"""The splits in which a repairer changed whether an input deviates: a count of each, by kind."""


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
    judged_by = {kind: inputs.kinds[kind] for kind in ("triggers", "agreeing", "seeds", "sampled")}
    counts: dict[str, _Changes] = {
        name: {kind: np.zeros(len(part)) for kind, part in judged_by.items()} for name in REPAIRERS
    }
    progress(0, SPLITS * FOLDS)
    for number, (split, fold) in enumerate(product(range(SPLITS), range(FOLDS)), 1):
        folds = inputs.folds(split)
        training = inputs.part(folds, lambda folds_of_inputs: folds_of_inputs != fold)  # noqa: B023 - called at once
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
            for kind, part in judged_by.items():
                _count_changes(repair, part, folds[kind] == fold, counts[name][kind])
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


def _judged(inputs: TrainingInputs, counts: _Changes) -> JudgedRepairer:
    ones = np.ones(len(inputs.triggers))
    mixture_counts = count_mixture(
        np.unique(inputs.seeds.seed_ids),
        (
            (inputs.triggers.seed_ids, ones, counts["triggers"] / SPLITS),
            (inputs.agreeing.seed_ids, inputs.weights(), counts["agreeing"] / SPLITS),
            (inputs.seeds.seed_ids, ones, counts["seeds"] / SPLITS),
        ),
    )
    before = inputs.sampled.deviating
    changed = counts["sampled"] / SPLITS
    unguided_mended = float(changed[before].sum())
    unguided_broken = float(changed[~before].sum())
    after = float(before.sum()) - unguided_mended + unguided_broken
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
        unguided_mended=unguided_mended,
        unguided_broken=unguided_broken,
        unguided_ratio=after / float(before.sum()) if before.any() else None,
        net=mixture_counts.net,
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

    @property
    def net(self) -> Estimate:
        """By how much deviations fall, as a share of the mixture, a third of each kind.

        The interval is a 95 % bootstrap interval over the seeds, each drawn with all that was made
        from it.
        """
        changed, counts = resampled_means(self.changed), resampled_means(self.counts)
        signs = np.array([1, -1, -1]) / 3
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
