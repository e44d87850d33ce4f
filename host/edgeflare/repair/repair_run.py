"""The steps of a repair, from a pair's seeds to a repaired model, or to the reason for none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare import __version__
from edgeflare.campaign.opened_pair import OpenedPair, open_pair
from edgeflare.core.arm import Arm
from edgeflare.core.seeds import Seeds
from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.models.pair import Pair
from edgeflare.repair.candidate_choice import CandidateChoice
from edgeflare.repair.candidate_plans import (
    CandidateMaker,
    CandidatePlan,
    RepairCandidate,
    allows_shifts,
    candidate_plans,
)
from edgeflare.repair.device_judgement import judged_on
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.judging.judged_inputs import (
    FRESH,
    JudgedSet,
    fresh_set,
    judged_sets,
    known_labels,
    original_label_of,
)
from edgeflare.repair.judging.judgement import (
    SetAside,
    candidate_answers,
    compared,
)
from edgeflare.repair.judging.near_boundary import near_boundary_inputs
from edgeflare.repair.judging.seed_split import SeedSplit, split_seeds
from edgeflare.repair.judging.shown_inputs import shown_inputs
from edgeflare.repair.precision.residual import residual
from edgeflare.repair.repair_outcome import OnDevice, RepairOutcome
from edgeflare.repair.repair_progress import ReportProgress
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.repair.repair_verdict import verdict
from edgeflare.repair.shifts.shift_candidate import shift_maker
from edgeflare.repair.stored_candidates import StoredCandidates
from edgeflare.replay.past_run import PastRun
from edgeflare.run.plan import Plan

FIT_INPUTS = 400
"""Inputs to fit with at most, half of them seeds, half of them near the original's boundary. The
time and the memory that fitting takes grow with them."""

LEAST_SEEDS = 50
"""Ten seeds at least choose and ten judge."""


def repair_pair(
    pair: Pair,
    past: PastRun | None,
    plan: Plan,
    profiles: Sequence[Profile],
    request: RepairRequest,
    folder: Path,
    progress: ReportProgress,
    *,
    resume: bool = False,
) -> RepairOutcome:
    """Try the candidates that are allowed, choose the best, and judge it.

    Seeds are divided: three fifths fit, one chooses, one judges. So nothing is chosen on what
    judges it. Candidates are judged on the host's kernels, the chosen one on each device too.
    The candidates that are tried are written, and nothing else.

    Args:
        pair: a classifier of images; with a run, all its seeds.
        past: the run that names it, to whose triggers shifts are fitted; None where the user named
            the pair itself.
        plan: says which devices and kernel sets are opened.
        profiles: the devices.
        request: the settings.
        folder: where candidates are stored; see `StoredCandidates`.
        progress: is called as the steps go on.
        resume: whether candidates that the folder holds were tried already.

    Raises:
        UserError: the request allows nothing, the pair has no fitting original or too few seeds,
            no candidate can be made of its models, or the folder holds another repair.
        InfrastructureError: a device or a worker process is lost for good.

    """
    plans = candidate_plans(request.method, request.target, in_place=request.in_place)
    original = _original(pair, past, request)
    with ExitStack() as stack:
        opened = open_pair(pair, plan, profiles, stack)
        _require_seeds(opened)
        fresh = None if request.test is None else opened.inputs.load(request.test, None)
        stored = StoredCandidates(folder, _about(opened, past, request), resume=resume)
        try:
            return _repaired(opened, past, request, plans, original, fresh, stored, progress)
        except UserError:
            if not resume:
                stored.remove()
            raise


def _repaired(
    opened: OpenedPair,
    past: PastRun | None,
    request: RepairRequest,
    plans: Sequence[CandidatePlan],
    original: bytes | None,
    fresh: Seeds | None,
    stored: StoredCandidates,
    progress: ReportProgress,
) -> RepairOutcome:
    """Make the inputs, try the candidates, and judge the best one."""
    rng = np.random.default_rng(request.rng_seed)
    labels = known_labels(opened)
    split = split_seeds(labels, rng)
    images, ids = fit_inputs(opened, labels, split, rng)
    choose, judge = (
        judged_sets(opened, labels, rows, rng, progress=partial(progress, name))
        for name, rows in (("inputs to choose", split.choose), ("to judge", split.judge))
    )
    if fresh is not None:
        judge[FRESH] = fresh_set(opened, fresh)
    makers: list[CandidateMaker] = []
    localized = None
    if original is not None:
        network = network_to_fit(opened, original, images, ids)
        localized = residual(network)
        makers += [one.of(network) for one in plans]
    if past is not None and _tries_shifts(past, request):
        makers.append(shift_maker(past, opened, split.fit, request.shifts, request.rng_seed))
    choice = CandidateChoice(opened, request, choose, stored, progress)
    tried, chosen = choice.best(makers)
    seeds = {name: len(getattr(split, name)) for name in ("fit", "choose", "judge")}
    provenance = [
        {"name": device.profile.name, "provenance": device.provenance.to_json()}
        for device in opened.devices
    ]
    none = "no candidate surely gains on the inputs to choose by"
    outcome = RepairOutcome(seeds, provenance, localized, tried, chosen, why=none)
    if chosen is None:
        return outcome
    after = candidate_answers(chosen.content, opened, judge)
    if isinstance(after, SetAside):
        why = f"{chosen.name} is set aside on the inputs that judge: {after.reason}"
        return replace(outcome, why=why)
    judgement, shown = compared(judge, after), shown_inputs(judge, after)
    devices = _on_devices(opened, chosen, judge, progress)
    written, why = verdict(judgement, devices)
    return replace(
        outcome,
        judgement=judgement,
        shown=shown,
        devices=devices,
        cost=choice.cost(chosen),
        written=written,
        why=why,
    )


def _on_devices(
    opened: OpenedPair,
    chosen: RepairCandidate,
    sets: Mapping[str, JudgedSet],
    progress: ReportProgress,
) -> list[OnDevice]:
    """Evaluate the chosen candidate and the model before on each device."""
    found = []
    for number, device in enumerate(opened.devices):
        progress("devices", number, len(opened.devices))
        found.append(judged_on(device, chosen.content, opened, sets))
    progress("devices", len(found), len(found))
    return found


def _about(opened: OpenedPair, past: PastRun | None, request: RepairRequest) -> dict[str, Any]:
    """Return what has to be the same where a repair goes on, as plain JSON values."""
    return {
        "version": __version__,
        "pair": opened.pair.fingerprint(),
        "run": None if past is None else str(past.directory.path),
        "device": [device.profile.name for device in opened.devices],
        **{f"--{name.replace('_', '-')}": value for name, value in request.to_json().items()},
        "--rounds": request.shifts.rounds,
        "--mixture": asdict(request.shifts.mixture),
    }


def fit_inputs(
    opened: OpenedPair, labels: NDArray[np.int64], split: SeedSplit, rng: np.random.Generator
) -> tuple[NDArray[np.uint8], list[int]]:
    """Return seeds to fit with and inputs near the boundary between them, and their seeds' ids.

    They are drawn whatever the method, so that all methods are judged by the same inputs.

    Args:
        opened: the pair.
        labels: of all its seeds, as `known_labels` returns them.
        split: the parts of the seeds.
        rng: the generator of all that is drawn.

    Returns:
        images: (n, H, W, C) uint8.
        ids: the n ids of their seeds.

    Raises:
        UserError: the original gives the known label to seeds of fewer than two labels.
        InfrastructureError: a worker process is lost for good.

    """
    images = opened.seeds.inputs[split.fit]
    some = np.sort(rng.permutation(len(images))[: FIT_INPUTS // 2])
    near = near_boundary_inputs(
        images, labels[split.fit], original_label_of(opened), FIT_INPUTS // 2, rng
    )
    ids = np.array(opened.seeds.ids or range(len(opened.seeds)), np.int64)[split.fit]
    fitted = np.concatenate([images[some], near.wide])
    return fitted, ids[np.concatenate([some, near.rows])].tolist()


def network_to_fit(
    opened: OpenedPair, original: bytes, images: NDArray[np.uint8], ids: Sequence[int]
) -> QuantizedNetwork:
    """Return the network to fit, with the inputs to fit it with.

    Args:
        opened: the pair.
        original: the original's `.tflite` file.
        images: (n, H, W, C), as `fit_inputs` returns them.
        ids: the seed that each was made from.

    """
    rows, original_rows = (opened.panel.rows(arm, images, ids) for arm in (Arm.TWIN, Arm.ORIGINAL))
    content = opened.pair.compressed.read_bytes()
    return QuantizedNetwork(content, original, rows, original_rows.astype(np.float32))


def shifts_alone(pair: Pair, past: PastRun | None, request: RepairRequest) -> bool:
    """Whether "auto" tries shifts alone, since the original has no weights that can be read."""
    return (
        request.method == "auto"
        and pair.original is not None
        and not _has_float_file(pair)
        and _tries_shifts(past, request)
    )


def _tries_shifts(past: PastRun | None, request: RepairRequest) -> bool:
    return past is not None and allows_shifts(
        request.method, request.target, in_place=request.in_place
    )


def _has_float_file(pair: Pair) -> bool:
    return pair.original is not None and Path(pair.original).suffix.lower() == ".tflite"


def _original(pair: Pair, past: PastRun | None, request: RepairRequest) -> bytes | None:
    """Return the original's file; None where shifts alone are tried.

    Raises:
        UserError: there is no original, or the request needs one with weights that can be read.

    """
    if pair.original is None:
        raise UserError(
            f"{pair.name} has no original model to repair towards: search with --original, and"
            " repair that run"
        )
    if request.method == "shifts" or shifts_alone(pair, past, request):
        return None
    if not _has_float_file(pair):
        raise UserError(
            f"the original {pair.original} is no .tflite file, and ranges, rounding, bias,"
            " precision and weights-only are fitted to its weights: --method shifts repairs a run"
            " without them"
        )
    return Path(pair.original).read_bytes()


def _require_seeds(opened: OpenedPair) -> None:
    if len(opened.seeds) < LEAST_SEEDS:
        raise UserError(
            f"{opened.pair.name} has {len(opened.seeds)} seeds, and a repair needs at least"
            f" {LEAST_SEEDS}, of which it fits with three fifths: give more seeds"
        )
