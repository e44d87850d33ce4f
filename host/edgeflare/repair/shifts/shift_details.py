"""What a repair by shifts says of itself in `repair.json`: the section `shifts` of its `details`.

docs/shifts.md says what each figure means.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from edgeflare.repair.shifts.boundary_set import BoundarySet
from edgeflare.repair.shifts.cross_validation import JudgedRepairer
from edgeflare.repair.shifts.fold_assignment import FOLDS, SPLITS
from edgeflare.repair.shifts.input_matching import matched_share
from edgeflare.repair.shifts.run_to_repair import RunInputs
from edgeflare.repair.shifts.shift_fitting import Fitted
from edgeflare.repair.shifts.shifts import STEP
from edgeflare.repair.shifts.training_inputs import TrainingInputs

STANDALONE = "shifts.tflite"
"""The shifts without the model, for one that cannot be edited."""


@dataclass(frozen=True, slots=True)
class FittedShifts:
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


def shift_details(found: FittedShifts, alone: bytes | None) -> dict[str, Any]:
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


def _inputs(found: FittedShifts) -> dict[str, Any]:
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


_KEYS = {
    "sampled_repaired": "unled_mended",
    "sampled_induced": "unled_broken",
    "sampled_ratio": "unled_ratio",
}


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
        "file": STANDALONE,
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
    }
