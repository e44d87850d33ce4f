"""`repair.json`, schema `edgeflare.repair/v1`: the repairers that were tried, and the outcome.

`repair.schema.json` beside this file describes it; docs/shifts.md says what each figure means.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from edgeflare import __version__
from edgeflare.repair.repaired_pair import MODEL
from edgeflare.repair.shifts.cross_validation import JudgedRepairer
from edgeflare.repair.shifts.fold_assignment import FOLDS, SPLITS
from edgeflare.repair.shifts.input_matching import matched_share
from edgeflare.repair.shifts.shift_repair import STANDALONE, Shifted, ShiftRepair, ShiftRequest
from edgeflare.repair.shifts.shifts import STEP
from edgeflare.replay.past_run import PastRun
from edgeflare.run.run_directory import write_atomically

SCHEMA = "edgeflare.repair/v1"


def to_document(past: PastRun, repair: ShiftRepair, request: ShiftRequest) -> dict[str, Any]:
    """Return a repair as plain JSON values."""
    run_inputs, boundary_set = repair.run_inputs, repair.boundary_set
    tested = 0 if repair.fresh is None else len(repair.fresh[0].samples) + repair.fresh[0].failed
    asked = 2 * (len(run_inputs.triggers) + run_inputs.not_reproduced)
    return {
        "schema": SCHEMA,
        "edgeflare": __version__,
        "run": {
            "path": str(past.directory.path),
            "pair": past.document.pair["name"],
            "fingerprint": past.document.pair["fingerprint"],
            "sha256": past.document.pair["sha256"],
            "strategy": past.document.strategy,
            "find": past.document.find,
            "rng_seed": past.document.rng_seed,
        },
        "devices": list(repair.devices),
        "classes": list(past.header.classes),
        "inputs": {
            "triggers": len(run_inputs.triggers),
            "seeds": len(run_inputs.seeds),
            "not_reproduced": run_inputs.not_reproduced,
            "rounds": request.rounds,
            "near_boundary_agreeing": len(repair.training.agreeing),
            "near_boundary_deviating": len(repair.training.near_deviating),
            "unled": len(boundary_set.sampled),
            "unled_deviating": int(boundary_set.sampled.deviating.sum()),
            "matched_share": matched_share(run_inputs.triggers, repair.training.weights()),
        },
        "queries": {
            "known": asked,
            "near_boundary": boundary_set.queries,
            "test": tested,
            "repaired": repair.verified,
        },
        "mixture": asdict(request.mixture),
        "folds": FOLDS,
        "splits": SPLITS,
        "repairers": {name: _judged(one) for name, one in repair.repairers.items()},
        "ceiling": repair.ceiling,
        "shifts": _shifts(repair),
        "test": _test(repair),
        "written": repair.repaired is not None,
        "why": repair.why,
        "repaired": None if repair.repaired is None else _repaired(repair.repaired),
        "again": None,
    }


def write_models(out: Path, repaired: Shifted) -> None:
    """Write the repaired model and the shifts alone into a folder, made if it is not there."""
    write_atomically(out / MODEL, repaired.model)
    write_atomically(out / STANDALONE, repaired.standalone)


def _judged(one: JudgedRepairer) -> dict[str, Any]:
    """Return a repairer's figures under the keys of the schema."""
    return {_KEYS.get(name, name): value for name, value in asdict(one).items()}


_KEYS = {
    "sampled_repaired": "unled_mended",
    "sampled_induced": "unled_broken",
    "sampled_ratio": "unled_ratio",
}


def _shifts(repair: ShiftRepair) -> dict[str, Any]:
    steps = repair.fitted.shifts.steps
    return {
        "strength": repair.fitted.strength,
        "step": STEP,
        "pairs": [
            {"classes": [a, b], "steps": int(steps[a, b])}
            for a in range(len(steps))
            for b in range(a + 1, len(steps))
            if steps[a, b]
        ],
    }


def _test(repair: ShiftRepair) -> dict[str, Any] | None:
    if repair.fresh is None:
        return None
    fresh, counted = repair.fresh
    return {
        "path": str(fresh.path),
        "inputs": len(fresh.samples),
        "failed": fresh.failed,
        **{name: asdict(one) for name, one in counted.items()},
    }


def _repaired(repaired: Shifted) -> dict[str, Any]:
    return {
        "file": MODEL,
        "sha256": hashlib.sha256(repaired.model).hexdigest(),
        **asdict(repaired.cost),
        "asked": repaired.asked,
        "same_labels": repaired.same_labels,
        "alone": {
            "file": STANDALONE,
            "sha256": hashlib.sha256(repaired.standalone).hexdigest(),
            "bytes": len(repaired.standalone),
        },
    }
