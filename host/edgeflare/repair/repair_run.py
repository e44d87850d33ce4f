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
from edgeflare.devices.decisive_provenance import DEVICE_DECIDES, HOST_DECIDES, decisive
from edgeflare.devices.profile import Profile
from edgeflare.diagnose.near_boundary import near_boundary_inputs
from edgeflare.errors import UserError
from edgeflare.models.host_description import describe_host
from edgeflare.models.model_file import read_model_file
from edgeflare.models.pair import Pair
from edgeflare.repair.candidate_choice import (
    CandidateChoice,
    ChosenCandidate,
    mended_and_broken,
    surely_gains,
)
from edgeflare.repair.candidate_plans import CandidatePlan, candidate_plans
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
    SCORED,
    Judgement,
    SetAside,
    candidate_answers,
    compared,
)
from edgeflare.repair.judging.seed_split import SeedSplit, split_seeds
from edgeflare.repair.judging.shown_inputs import shown_inputs
from edgeflare.repair.precision.residual import residual
from edgeflare.repair.repair_candidate import CandidateMaker, RepairCandidate, ReportProgress
from edgeflare.repair.repair_cost import Cost
from edgeflare.repair.repair_outcome import (
    OfferedCandidate,
    OnDevice,
    RepairOutcome,
    TriedCandidate,
)
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.repair.repair_requirements import original_file, require_seeds, tries_shifts
from edgeflare.repair.shifts.shift_candidate import shift_maker
from edgeflare.repair.stored_candidates import StoredCandidates
from edgeflare.replay.past_run import PastRun
from edgeflare.run.plan import Plan

FIT_INPUTS = 400
"""Inputs to fit with at most, half of them seeds, half of them near the original's boundary. The
time and the memory that fitting takes grow with them."""


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
    original = original_file(pair, past, request)
    with ExitStack() as stack:
        opened = open_pair(pair, plan, profiles, stack)
        require_seeds(opened)
        fresh = None if request.test is None else opened.inputs.load(request.test)
        stored = StoredCandidates(folder, repair_identity(opened, past, request), resume=resume)
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
    if past is not None and tries_shifts(past, request):
        makers.append(shift_maker(past, opened, split.fit, request.shifts, request.rng_seed))
    choice = CandidateChoice(opened, request, choose, stored, progress)
    made = choice.best(makers)
    tried, chosen = made.tried, made.chosen
    provenance = [
        {"name": device.profile.name, "provenance": device.provenance.to_json()}
        for device in opened.devices
    ]
    outcome = RepairOutcome(
        *(split.sizes, provenance, localized, tried, chosen),
        why=_why_none(tried),
        offered=_offered(made, opened, judge),
    )
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
        cost=_cost(choice, chosen, tried),
        written=written,
        why=why,
    )


def _why_none(tried: Sequence[TriedCandidate]) -> str:
    """Return why no candidate is chosen, where none is."""
    judgements = [one.judgement for one in tried if one.judgement is not None]
    if judgements and not any(one.deviating for one in judgements[0].before.values()):
        return "nothing deviates on the inputs to choose by, so that there is nothing to repair"
    if judgements and all(one.needs for one in tried if one.judgement is not None):
        return "the limits exclude every candidate"
    within = " within the limits" if any(one.needs for one in tried) else ""
    return f"no candidate{within} surely gains on the inputs to choose by"


def _offered(
    made: ChosenCandidate, opened: OpenedPair, sets: Mapping[str, JudgedSet]
) -> OfferedCandidate | None:
    """Judge the best candidate beyond the limits; None where there is none, or no sure gain."""
    if made.offered is None:
        return None
    candidate, tried = made.offered
    after = candidate_answers(candidate.content, opened, sets)
    if isinstance(after, SetAside):
        return None
    judgement = compared(sets, after)
    return OfferedCandidate(tried, judgement) if surely_gains(judgement) else None


def _cost(
    choice: CandidateChoice, chosen: RepairCandidate, tried: Sequence[TriedCandidate]
) -> Cost:
    """Return the cost that the chosen candidate was judged by, or measure it where none was."""
    costs = next(one.costs for one in tried if one.name == chosen.name)
    return (costs or choice.costs(chosen))[0]


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


def repair_identity(
    opened: OpenedPair, past: PastRun | None, request: RepairRequest
) -> dict[str, Any]:
    """Return what has to be the same where a repair goes on, as plain JSON values."""
    return {
        "version": __version__,
        "pair": opened.pair.fingerprint(),
        "run": None if past is None else str(past.directory.path.resolve()),
        "findings": 0 if past is None else len(past.document.findings),
        "device": [decisive(one.provenance.to_json(), DEVICE_DECIDES) for one in opened.devices],
        "host": decisive(describe_host(opened.pair.original), HOST_DECIDES),
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
    ids = np.array(opened.seeds.seed_ids, np.int64)[split.fit]
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
    content = read_model_file(opened.pair.compressed)
    return QuantizedNetwork(content, original, rows, original_rows.astype(np.float32))


def verdict(judgement: Judgement, devices: Sequence[OnDevice]) -> tuple[bool, str]:
    """Say whether the chosen candidate is to be written, and why.

    Args:
        judgement: on inputs that nothing was chosen on.
        devices: the same inputs on each device.

    """
    mended, broken = mended_and_broken(judgement)
    before, after = (
        sum(figures[name].deviating for name in SCORED)
        for figures in (judgement.before, judgement.after)
    )
    said = f"{before:,} held-out inputs near the boundary deviate before and {after:,} after"
    if not surely_gains(judgement):
        return False, (
            f"the chosen candidate does not surely gain on held-out inputs: {said}, {mended:,} are"
            f" mended and {broken:,} broken"
        )
    if FRESH in judgement.after:
        old, new = (one[FRESH].deviating for one in (judgement.before, judgement.after))
        if new > old:
            return False, f"on fresh data {new:,} inputs would deviate instead of {old:,}"
    for one in devices:
        lost, failed = (
            sum(figures.failed for figures in side.values()) for side in (one.before, one.after)
        )
        if failed > lost:
            return False, f"on {one.device} it gives no answer on {failed - lost:,} held-out inputs"
        old, new = (
            sum(figures.deviating for figures in side.values()) for side in (one.before, one.after)
        )
        if new >= old:
            return (
                False,
                f"on {one.device} {new:,} held-out inputs would deviate instead of {old:,}",
            )
    return True, said
