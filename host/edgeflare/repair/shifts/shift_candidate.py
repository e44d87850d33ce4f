"""The candidate of a repair by shifts: from a run's seeds and triggers to a repaired model.

Shifts are fitted to the seeds to fit with, and to what was made of them. Their cross-validation
stays inside of that part too: it says whether there is a candidate at all.

What a repair by shifts says of itself in `repair.json`: the section `shifts` of its `details`.
docs/shifts.md says what each figure means.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.opened_pair import OpenedPair
from edgeflare.models.model_file import read_model_file
from edgeflare.repair.repair_candidate import (
    CandidateMaker,
    NoCandidate,
    RepairCandidate,
    StepProgress,
)
from edgeflare.repair.shifts.boundary_set import ROUNDS, BoundarySet, gather
from edgeflare.repair.shifts.cross_validation import SHIFTS, JudgedRepairer, evaluate
from edgeflare.repair.shifts.fold_assignment import FOLDS, SPLITS
from edgeflare.repair.shifts.input_matching import matched_share
from edgeflare.repair.shifts.mixture import Mixture
from edgeflare.repair.shifts.model_to_repair import read_model_to_repair, require_probabilities
from edgeflare.repair.shifts.perceptron import require_scikit_learn
from edgeflare.repair.shifts.run_to_repair import (
    RunInputs,
    RunToRepair,
    evaluate_run_inputs,
    run_to_repair,
)
from edgeflare.repair.shifts.shift_effects import fold_rows, shift_effects
from edgeflare.repair.shifts.shift_fitting import Fitted, fit
from edgeflare.repair.shifts.shifts import STEP, append, standalone
from edgeflare.repair.shifts.training_inputs import TrainingInputs, training_inputs
from edgeflare.replay.past_run import PastRun

_STANDALONE = "shifts.tflite"
"""The shifts without the model, for one that cannot be edited."""

_KEYS = {
    "sampled_repaired": "unled_mended",
    "sampled_induced": "unled_broken",
    "sampled_ratio": "unled_ratio",
}

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
        opened: its pair with all seeds that it had, and the devices to ask.
        rows: positions of the seeds to fit with.
        request: the settings.
        rng_seed: of the generators of all that is drawn.

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
        InfrastructureError: a device or a worker process is lost for good.

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
    found = _FittedShifts(
        run_inputs, boundary_set, training, request.rounds, repairers, effects.ceiling, fitted
    )
    why = why_none(repairers[SHIFTS], fitted)
    if why is not None:
        raise NoCandidate(why, _shift_details(found, None))
    alone = standalone(fitted.shifts, model)
    return RepairCandidate(
        SHIFTS,
        append(content, fitted.shifts, model, str(path)),
        None,
        _shift_details(found, alone),
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
    if judged.sampled_induced > judged.sampled_repaired:
        return (
            f"of inputs as they come on held-out folds {judged.sampled_induced:.1f} begin to"
            f" deviate, and {judged.sampled_repaired:.1f} no longer do"
        )
    return None


@dataclass(frozen=True, slots=True)
class _FittedShifts:
    """Shifts, and what they were fitted to and cross-validated by.

    Attributes:
        run_inputs: the run's triggers from the seeds to fit with, and these seeds.
        boundary_set: inputs near the boundary, made from the same seeds.
        training: both, as repairers are trained with them.
        rounds: searches from each seed for the boundary set.
        repairers: the effect of each repairer on held-out folds, by name.
        ceiling: the largest net that shifts reach on the inputs that they are fitted to.
        fitted: the shifts, fitted to all inputs.

    """

    run_inputs: RunInputs
    boundary_set: BoundarySet
    training: TrainingInputs
    rounds: int
    repairers: Mapping[str, JudgedRepairer]
    ceiling: float
    fitted: Fitted


def _shift_details(found: _FittedShifts, alone: bytes | None) -> dict[str, Any]:
    """Return the section by its name, as plain JSON values.

    Args:
        found: the shifts.
        alone: content of `shifts.tflite`; None where shifts are no candidate.

    """
    return {
        "shifts": {
            "inputs": _inputs(found),
            "queries": {
                "known": 2 * (len(found.run_inputs.triggers) + found.run_inputs.not_reproduced),
                "near_boundary": found.boundary_set.queries,
            },
            "mixture": asdict(found.training.mixture),
            "folds": FOLDS,
            "splits": SPLITS,
            "repairers": {name: _judged(one) for name, one in found.repairers.items()},
            "ceiling": found.ceiling,
            "shifts": _shifts(found.fitted),
            "alone": None if alone is None else _file(alone),
        }
    }


def _inputs(found: _FittedShifts) -> dict[str, Any]:
    run_inputs, sampled = found.run_inputs, found.boundary_set.sampled
    return {
        "triggers": len(run_inputs.triggers),
        "seeds": len(run_inputs.seeds),
        "not_reproduced": run_inputs.not_reproduced,
        "rounds": found.rounds,
        "near_boundary_agreeing": len(found.training.agreeing),
        "near_boundary_deviating": len(found.training.near_deviating),
        "unled": len(sampled),
        "unled_deviating": int(sampled.deviating.sum()),
        "matched_share": matched_share(run_inputs.triggers, found.training.weights()),
    }


def _judged(one: JudgedRepairer) -> dict[str, Any]:
    """Return a repairer's figures under their keys."""
    return {_KEYS.get(name, name): value for name, value in asdict(one).items()}


def _shifts(fitted: Fitted) -> dict[str, Any]:
    steps = fitted.shifts.steps
    return {
        "strength": fitted.strength,
        "step": STEP,
        "pairs": [
            {"classes": [a, b], "steps": int(steps[a, b])}
            for a in range(len(steps))
            for b in range(a + 1, len(steps))
            if steps[a, b]
        ],
    }


def _file(content: bytes) -> dict[str, Any]:
    return {
        "file": _STANDALONE,
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
    }
