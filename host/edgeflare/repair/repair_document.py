"""`repair.json`, schema `edgeflare.repair/v2`: the candidates that were tried, and the outcome.

Its Pareto front has the candidates that no other one betters in score, time and bytes.

`repair.schema.json` beside this file describes it; docs/repair.md says what each figure means, and
docs/shifts.md those of the details of shifts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from edgeflare import __version__
from edgeflare.core.answer import Answer
from edgeflare.models.pair import Pair
from edgeflare.repair.cost_limits import NONE
from edgeflare.repair.judging.judgement import Judgement
from edgeflare.repair.judging.shown_inputs import ShownInput
from edgeflare.repair.repair_cost import Cost
from edgeflare.repair.repair_file import SCHEMA
from edgeflare.repair.repair_outcome import OnDevice, RepairOutcome, TriedCandidate
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.repair.repaired_pair import MODEL, RECIPE
from edgeflare.repair.stored_candidates import FOLDER, file_of
from edgeflare.replay.past_run import PastRun


def repair_document(
    pair: Pair, past: PastRun | None, outcome: RepairOutcome, request: RepairRequest
) -> dict[str, Any]:
    """Return a repair as plain JSON values.

    Args:
        pair: that is repaired.
        past: the run that names it; None where the user named the pair itself.
        outcome: what came of it.
        request: what was asked.

    """
    return {
        "schema": SCHEMA,
        "edgeflare": __version__,
        "pair": {
            "name": pair.name,
            "fingerprint": pair.fingerprint(),
            "sha256": pair.model_hashes(),
        },
        "run": None if past is None else str(past.directory.path),
        "devices": list(outcome.provenance),
        "classes": list(pair.classes),
        "request": request.to_json(),
        "seeds": dict(outcome.seeds),
        "residual": outcome.residual,
        "candidates": [_tried(one) for one in outcome.tried],
        "front": pareto_front(
            {
                one.name: (one.ratio, one.judgement.score, one.size)
                for one in outcome.tried
                if one.judgement is not None and one.ratio is not None and one.size is not None
            }
        ),
        "chosen": None if outcome.chosen is None else outcome.chosen.name,
        "judged": None if outcome.judgement is None else _sets(outcome.judgement),
        "shown": [_shown(one) for one in outcome.shown],
        "on_devices": [_on_device(one) for one in outcome.devices],
        "written": outcome.written,
        "why": outcome.why,
        "offered": _offered(outcome),
        "repaired": _repaired(outcome),
        "again": None,
    }


def _tried(one: TriedCandidate) -> dict[str, Any]:
    judgement = one.judgement
    return {
        "name": one.name,
        "seconds": round(one.seconds, 3),
        "file": None if judgement is None else f"{FOLDER}/{file_of(one.name)}",
        "bytes": one.size,
        "latency_ratio": one.ratio,
        "latency": [_latency(cost) for cost in one.costs],
        "score": None if judgement is None else judgement.score,
        "sets": None if judgement is None else _sets(judgement),
        "set_aside": one.set_aside,
        "needs": dict(one.needs),
        "details": dict(one.details),
    }


def _latency(cost: Cost) -> dict[str, Any]:
    """Return what was measured on a device, without the bytes."""
    return {key: value for key, value in asdict(cost).items() if not key.startswith("bytes_")}


def _offered(outcome: RepairOutcome) -> dict[str, Any] | None:
    """Return what more cost would give; None where that is nothing."""
    if outcome.offered is None:
        return None
    tried = outcome.offered.tried
    return {
        "candidate": tried.name,
        "options": [f"{option} {NONE}" for option in tried.needs],
        "judged": _sets(outcome.offered.judgement),
    }


def _sets(judgement: Judgement) -> dict[str, Any]:
    """Return a judgement by the name of the set."""
    return {
        name: {
            "before": asdict(judgement.before[name]),
            "after": asdict(judgement.after[name]),
            **asdict(judgement.changes[name]),
            "accuracy": asdict(judgement.accuracy[name]) if name in judgement.accuracy else None,
        }
        for name in judgement.before
    }


def _shown(one: ShownInput) -> dict[str, Any]:
    return {
        "set": one.set,
        "change": one.change,
        "seed_id": one.seed_id,
        "image": one.file,
        "original": _answer(one.original),
        "before": _answer(one.before),
        "after": _answer(one.after),
    }


def _answer(answer: Answer) -> dict[str, Any]:
    return {
        "label": answer.decision,
        "probability": round(float(answer.probabilities.max()), 6),
        "margin": round(answer.lead(), 6),
    }


def _on_device(one: OnDevice) -> dict[str, Any]:
    return {
        "device": one.device,
        "sets": {
            name: {"before": asdict(one.before[name]), "after": asdict(one.after[name])}
            for name in one.before
        },
        "asked": one.asked,
        "same_labels": one.same_labels,
    }


def _repaired(outcome: RepairOutcome) -> dict[str, Any] | None:
    """Return the file that is written, and its cost; None where none is."""
    if not outcome.written or outcome.chosen is None or outcome.cost is None:
        return None
    return {
        "file": MODEL,
        "sha256": hashlib.sha256(outcome.chosen.content).hexdigest(),
        "recipe": None if outcome.chosen.recipe is None else RECIPE,
        **asdict(outcome.cost),
    }


def pareto_front(points: Mapping[str, tuple[float, ...]]) -> list[str]:
    """Return the names of the points that no other point dominates, in order of their values.

    One point dominates another if none of its values is greater, and one is less.

    Args:
        points: by name, values of which smaller is better, as many for each point.

    """
    kept = (
        name
        for name, one in points.items()
        if not any(_dominates(other, one) for other in points.values())
    )
    return sorted(kept, key=lambda name: points[name])


def _dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
