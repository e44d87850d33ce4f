"""The candidate of a repair by shifts: from a run's seeds and triggers to a repaired model.

Shifts are fitted to the seeds to fit with, and to what was made of them. Their cross-validation
stays inside of that part too: it says whether there is a candidate at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.models.model_file import read_model_file
from edgeflare.repair.repair_candidate import (
    CandidateMaker,
    NoCandidate,
    RepairCandidate,
    StepProgress,
)
from edgeflare.repair.repair_methods import CandidateDetails
from edgeflare.repair.shift_details import (
    SHIFTS,
    FoundShifts,
    JudgedRepairer,
    Mixture,
    MovedBoundary,
    ShiftDetails,
    ShiftInputs,
    ShiftQueries,
    StandaloneShifts,
)
from edgeflare.repair.shifts.baselines.perceptron import require_scikit_learn
from edgeflare.repair.shifts.boundary_set import ROUNDS, BoundarySet, gather
from edgeflare.repair.shifts.cross_validation import evaluate
from edgeflare.repair.shifts.model_to_repair import read_model_to_repair, require_probabilities
from edgeflare.repair.shifts.repair_samples import FOLDS, SPLITS
from edgeflare.repair.shifts.run_to_repair import (
    RunInputs,
    RunToRepair,
    evaluate_run_inputs,
    run_to_repair,
)
from edgeflare.repair.shifts.shift_fitting import Fitted, fit, fold_rows, shift_effects
from edgeflare.repair.shifts.shifts import STEP, append, standalone
from edgeflare.repair.shifts.training_inputs import TrainingInputs, matched_share, training_inputs
from edgeflare.replay.past_run import PastRun

_STANDALONE = "shifts.tflite"
"""The shifts without the model, for one that cannot be edited."""

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ShiftRequest:
    """The settings of shifts.

    Attributes:
        rounds: searches from each seed for near-boundary inputs.
        mixture: the shares of inputs that shifts are fitted to and cross-validated by.

    """

    rounds: int = ROUNDS
    mixture: Mixture = field(default_factory=Mixture)


def shift_maker(
    past: PastRun, opened: OpenedPair, rows: Rows, request: ShiftRequest, rng_seed: int
) -> CandidateMaker:
    """Return what makes the candidate by shifts.

    Args:
        past: the run.
        opened: pair of the run with all seeds that it had, and the devices to ask.
        rows: positions of the seeds to fit with.
        request: the settings.
        rng_seed: seed of the generators of all that is drawn.

    """

    def make(progress: StepProgress) -> Sequence[RepairCandidate]:
        return (_candidate(run_to_repair(past, opened, rows, rng_seed), request, progress),)

    return CandidateMaker(SHIFTS, "shifts", make)


def _candidate(run: RunToRepair, request: ShiftRequest, progress: StepProgress) -> RepairCandidate:
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
    boundary_set = gather(run, run_inputs, request.rounds, progress)
    training = training_inputs(run_inputs, boundary_set, request.mixture)
    effects = shift_effects(training)
    repairers = evaluate(training, effects, progress)
    fitted = fit(effects, fold_rows(training.folds(0)))
    details = ShiftDetails(
        inputs=_inputs(run_inputs, boundary_set, training, request.rounds),
        queries=ShiftQueries(
            2 * (len(run_inputs.triggers) + run_inputs.not_reproduced), boundary_set.queries
        ),
        mixture=training.mixture,
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
    if judged.unled_broken > judged.unled_mended:
        return (
            f"of inputs as they come on held-out folds {judged.unled_broken:.1f} begin to"
            f" deviate, and {judged.unled_mended:.1f} no longer do"
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
        unled=len(sampled),
        unled_deviating=int(sampled.deviating.sum()),
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
