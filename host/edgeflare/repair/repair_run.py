"""The steps of a repair, from a pair's seeds to a repaired model, or to the reason for none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.opened_pair import OpenedPair, open_pair
from edgeflare.core.arm import Arm
from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.models.pair import Pair
from edgeflare.models.pair_input import DEFAULT_DOMAIN
from edgeflare.models.pair_interface import DEFAULT_TASK
from edgeflare.repair.candidate_choice import CandidateChoice, mended_and_broken, surely_gains
from edgeflare.repair.candidate_plans import RepairCandidate, candidate_plans
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
from edgeflare.repair.judging.judgement import SCORED, Judgement, SetAside, judged
from edgeflare.repair.judging.near_boundary import near_boundary_inputs
from edgeflare.repair.judging.seed_split import SeedSplit, split_seeds
from edgeflare.repair.repair_outcome import OnDevice, RepairOutcome
from edgeflare.repair.repair_progress import ReportProgress
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.run.plan import Plan

FIT_INPUTS = 400
"""Inputs to fit with at most, half of them seeds, half of them near the original's boundary. The
time and the memory that fitting takes grow with them."""

LEAST_SEEDS = 50
"""Ten seeds at least choose and ten judge."""


def repair_by_fitting(
    pair: Pair,
    plan: Plan,
    profiles: Sequence[Profile],
    request: RepairRequest,
    progress: ReportProgress,
) -> RepairOutcome:
    """Try the candidates that are allowed, choose the best, and judge it; nothing is written.

    Seeds are divided: three fifths fit, one chooses, one judges. So nothing is chosen on what
    judges it. Candidates are judged on the host's kernels, the chosen one on each device too.

    Args:
        pair: a classifier of images, its original a `.tflite` file.
        plan: says which devices and kernel sets are opened.
        profiles: the devices.
        request: the settings.
        progress: is called as the steps go on.

    Raises:
        UserError: the request allows nothing, the pair is of another kind, has too few seeds, or
            its models do not match.
        InfrastructureError: a device or a worker process is lost for good.

    """
    plans = candidate_plans(request.method, request.target, in_place=request.in_place)
    _require_image_classifier(pair)
    original = _original(pair)
    rng = np.random.default_rng(request.rng_seed)
    with ExitStack() as stack:
        opened = open_pair(pair, plan, profiles, stack)
        _require_seeds(opened)
        fresh = None if request.test is None else opened.inputs.load(request.test, None)
        labels = known_labels(opened)
        split = split_seeds(labels, rng)
        network = _network(opened, original, labels, split, rng)
        choose, judge = (
            judged_sets(opened, labels, rows, rng, progress=partial(progress, name))
            for name, rows in (("inputs to choose", split.choose), ("to judge", split.judge))
        )
        if fresh is not None:
            judge[FRESH] = fresh_set(opened, fresh)
        choice = CandidateChoice(opened, request, network, choose, progress)
        tried, chosen = choice.best(plans)
        seeds = {name: len(getattr(split, name)) for name in ("fit", "choose", "judge")}
        provenance = [
            {"name": device.profile.name, "provenance": device.provenance.to_json()}
            for device in opened.devices
        ]
        if chosen is None:
            why = "no candidate surely gains on the inputs to choose by"
            return RepairOutcome(seeds, tried, None, None, (), None, False, why, provenance)
        judgement = judged(chosen.content, opened, judge)
        if isinstance(judgement, SetAside):
            why = f"{chosen.name} is set aside on the inputs that judge: {judgement.reason}"
            return RepairOutcome(seeds, tried, chosen, None, (), None, False, why, provenance)
        devices = _on_devices(opened, chosen, judge, progress)
        cost = choice.cost(chosen)
        written, why = verdict(judgement, devices)
    return RepairOutcome(seeds, tried, chosen, judgement, devices, cost, written, why, provenance)


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
        old, new = (
            sum(figures.deviating for figures in side.values()) for side in (one.before, one.after)
        )
        if new >= old:
            return (
                False,
                f"on {one.device} {new:,} held-out inputs would deviate instead of {old:,}",
            )
    return True, said


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


def _network(
    opened: OpenedPair,
    original: bytes,
    labels: NDArray[np.int64],
    split: SeedSplit,
    rng: np.random.Generator,
) -> QuantizedNetwork:
    """Return the network to fit, with seeds and inputs near the boundary between them."""
    images = opened.seeds.inputs[split.fit]
    some = np.sort(rng.permutation(len(images))[: FIT_INPUTS // 2])
    near = near_boundary_inputs(
        images, labels[split.fit], original_label_of(opened), FIT_INPUTS // 2, rng
    )
    fitted = np.concatenate([images[some], near.wide])
    ids = np.array(opened.seeds.ids or range(len(opened.seeds)), np.int64)[split.fit]
    of = ids[np.concatenate([some, near.rows])].tolist()
    rows, original_rows = (opened.panel.rows(arm, fitted, of) for arm in (Arm.TWIN, Arm.ORIGINAL))
    content = opened.pair.compressed.read_bytes()
    return QuantizedNetwork(content, original, rows, original_rows.astype(np.float32))


def _require_image_classifier(pair: Pair) -> None:
    """Refuse a pair of another kind.

    Raises:
        UserError: its inputs are no images, or the task is another one.

    """
    interface = pair.interface
    if interface.task == DEFAULT_TASK and interface.domain_name == DEFAULT_DOMAIN:
        return
    raise UserError(
        f"repair is for classifiers of images, and {pair.name} is of the domain"
        f" {interface.domain_name} and the task {interface.task}: convert its original anew"
    )


def _original(pair: Pair) -> bytes:
    """Return the original's file.

    Raises:
        UserError: it is none with weights that can be read.

    """
    path = pair.original
    if path is None or Path(path).suffix.lower() != ".tflite":
        what = "there is no original" if path is None else f"the original {path} is no .tflite file"
        raise UserError(
            f"{what}, and ranges, rounding, bias, precision and weights-only are fitted to its"
            " weights: --method shifts repairs a run without them"
        )
    return Path(path).read_bytes()


def _require_seeds(opened: OpenedPair) -> None:
    if len(opened.seeds) < LEAST_SEEDS:
        raise UserError(
            f"{opened.pair.name} has {len(opened.seeds)} seeds, and a repair needs at least"
            f" {LEAST_SEEDS}, of which it fits with three fifths: give more seeds"
        )
