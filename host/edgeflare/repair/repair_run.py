"""The steps of a repair, from a pair's seeds to a repaired model, or to the reason for none."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.opened_pair import OpenedPair, open_pair
from edgeflare.devices.profile import Profile
from edgeflare.errors import EdgeFlareError, InfrastructureError, UserError
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.original import open_original
from edgeflare.models.pair import Pair
from edgeflare.models.pair_input import DEFAULT_DOMAIN
from edgeflare.models.pair_interface import DEFAULT_TASK
from edgeflare.repair.candidate_plans import CandidatePlan, RepairCandidate, candidate_plans
from edgeflare.repair.cost_limits import least_limit
from edgeflare.repair.device_judgement import cost_on, judged_on, refusal_by
from edgeflare.repair.fitting.candidate_check import candidate_fault
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.judging.candidate_model import NAME
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
from edgeflare.repair.judging.sign_test import sign_test
from edgeflare.repair.repair_cost import Cost
from edgeflare.repair.repair_outcome import OnDevice, RepairOutcome, TriedCandidate
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.run.plan import Plan

FIT_INPUTS = 400
"""Inputs to fit with at most, half of them seeds, half of them near the original's boundary. More
make rounding slower and, on the int8 models of benchmarks/README.md, hardly better."""

LEAST_SEEDS = 50
"""Ten seeds at least choose and ten judge."""

_NEEDS = "it needs"

SURE = 0.05
"""The p value below which more inputs are mended than broken not by chance."""

ReportProgress = Callable[[str, int, int], None]
"""Is called with the name of a step, how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True)
class _Repair:
    """A repair that is under way."""

    opened: OpenedPair
    request: RepairRequest
    network: QuantizedNetwork
    choose: dict[str, JudgedSet]
    progress: ReportProgress


def repair(
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
        under_way = _Repair(opened, request, network, choose, progress)
        tried, chosen = _choose(under_way, plans)
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
            why = f"the chosen candidate, {chosen.name}, is no good: {judgement.reason}"
            return RepairOutcome(seeds, tried, chosen, None, (), None, False, why, provenance)
        devices = _on_devices(under_way, chosen, judge)
        cost = _cost(under_way, chosen)
        written, why = verdict(judgement, devices)
    return RepairOutcome(seeds, tried, chosen, judgement, devices, cost, written, why, provenance)


def _choose(
    repair: _Repair, plans: Sequence[CandidatePlan]
) -> tuple[list[TriedCandidate], RepairCandidate | None]:
    """Try all candidates, and return the best of those that surely gain."""
    tried: list[TriedCandidate] = []
    best: tuple[float, RepairCandidate] | None = None
    for number, plan in enumerate(plans):
        repair.progress("candidates", number, len(plans))
        candidate, result = _tried(repair, plan)
        tried.append(result)
        if candidate is None or result.judgement is None or result.set_aside is not None:
            continue
        score = result.judgement.score
        if surely_gains(result.judgement) and (best is None or score < best[0]):
            refused = _refusal(repair.opened, candidate)
            if refused is None:
                best = score, candidate
            else:
                tried[-1] = replace(result, set_aside=refused)
    repair.progress("candidates", len(plans), len(plans))
    _require_allowed(tried)
    return tried, None if best is None else best[1]


def _require_allowed(tried: Sequence[TriedCandidate]) -> None:
    """Refuse limits that exclude every candidate, and name the nearest that would not.

    Raises:
        UserError: they do.

    """
    beyond = [one for one in tried if one.set_aside and one.set_aside.startswith(_NEEDS)]
    if tried and len(beyond) == len(tried):
        nearest = min(beyond, key=lambda one: (one.ratio or 0.0, one.size or 0))
        aside = str(nearest.set_aside).removeprefix("it ")
        raise UserError(f"the limits exclude every candidate: {nearest.name} {aside}")


def _tried(repair: _Repair, plan: CandidatePlan) -> tuple[RepairCandidate | None, TriedCandidate]:
    """Make and judge a candidate; one that fails is set aside, and others are tried."""
    begun = time.monotonic()
    try:
        candidate = plan.make(repair.network, partial(repair.progress, plan.name))
    except InfrastructureError:
        raise
    except EdgeFlareError as error:
        return None, TriedCandidate(
            plan.name, time.monotonic() - begun, None, None, None, str(error)
        )
    seconds, size = time.monotonic() - begun, len(candidate.content)
    aside, ratio = _beyond_limits(repair, candidate)
    if aside is not None:
        return None, TriedCandidate(plan.name, seconds, size, ratio, None, aside)
    fault = None if candidate.recipe is None else _fault(repair.opened, candidate)
    if fault is not None:
        return None, TriedCandidate(plan.name, seconds, size, ratio, None, fault)
    judgement = judged(candidate.content, repair.opened, repair.choose)
    if isinstance(judgement, SetAside):
        return None, TriedCandidate(plan.name, seconds, size, ratio, None, judgement.reason)
    return candidate, TriedCandidate(plan.name, seconds, size, ratio, judgement, None)


def _refusal(opened: OpenedPair, candidate: RepairCandidate) -> str | None:
    """Return why one of the devices does not open a candidate; None where all do."""
    reasons = (refusal_by(device, candidate.content, opened) for device in opened.devices)
    return next(filter(None, reasons), None)


def _fault(opened: OpenedPair, candidate: RepairCandidate) -> str | None:
    """Return what is wrong with a rewritten file on one of the host's kernel sets, if anything."""
    with TemporaryDirectory(prefix="edgeflare-") as folder:
        path = Path(folder) / NAME
        path.write_bytes(candidate.content)
        return candidate_fault(replace(opened.pair, compressed=path), opened.seeds)


def _beyond_limits(repair: _Repair, candidate: RepairCandidate) -> tuple[str | None, float | None]:
    """Return why a candidate is larger or slower than allowed, and the ratio of its time."""
    request, before = repair.request, len(repair.network.content)
    after = len(candidate.content)
    if request.size_limit is not None and not request.size_limit.allows(before, after):
        return f"{_NEEDS} --max-size {least_limit(before, after)}", None
    if request.latency_limit is None:
        return None, None
    refused = _refusal(repair.opened, candidate)
    if refused is not None:
        return refused, None
    cost = _cost(repair, candidate)
    times = cost.seconds_before, cost.seconds_before * cost.ratio
    if request.latency_limit.allows(*times):
        return None, cost.ratio
    return f"{_NEEDS} --max-latency {least_limit(*times)}", cost.ratio


def surely_gains(judgement: Judgement) -> bool:
    """Whether a candidate mends more of the scored inputs than it breaks, and not by chance."""
    mended, broken = _pooled(judgement)
    return judgement.score < 1.0 and mended > broken and sign_test(mended, broken) < SURE


def verdict(judgement: Judgement, devices: Sequence[OnDevice]) -> tuple[bool, str]:
    """Say whether the chosen candidate is to be written, and why.

    Args:
        judgement: on inputs that nothing was chosen on.
        devices: the same inputs on each device.

    """
    mended, broken = _pooled(judgement)
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


def _pooled(judgement: Judgement) -> tuple[int, int]:
    """Return how many inputs of the scored sets are mended, and broken."""
    changes = [judgement.changes[name] for name in SCORED]
    return sum(one.mended for one in changes), sum(one.broken for one in changes)


def _on_devices(
    repair: _Repair, chosen: RepairCandidate, sets: dict[str, JudgedSet]
) -> list[OnDevice]:
    """Evaluate the chosen candidate and the model before on each device."""
    devices = []
    for number, device in enumerate(repair.opened.devices):
        repair.progress("devices", number, len(repair.opened.devices))
        devices.append(judged_on(device, chosen.content, repair.opened, sets))
    repair.progress("devices", len(devices), len(devices))
    return devices


def _cost(repair: _Repair, candidate: RepairCandidate) -> Cost:
    """Measure a candidate and the model before in turns, on the first device."""
    images = next(iter(repair.choose.values())).images
    return cost_on(repair.opened.devices[0], candidate.content, repair.opened, images)


def _network(
    opened: OpenedPair,
    original: bytes,
    labels: NDArray[np.int64],
    split: SeedSplit,
    rng: np.random.Generator,
) -> QuantizedNetwork:
    """Return the network to fit, with seeds and inputs near the boundary between them."""
    images = opened.seeds.inputs[split.fit]
    some = rng.permutation(len(images))[: FIT_INPUTS // 2]
    pair = opened.pair
    with ExitStack() as stack:
        model = stack.enter_context(closing(open_original(pair, opened.inputs)))
        theirs = ModelInputs(
            pair.interface, model.signature.inputs, str(pair.original), like=opened.inputs
        )
        encoders = opened.inputs.encoder(), theirs.encoder()
    near = near_boundary_inputs(
        images, labels[split.fit], original_label_of(opened), FIT_INPUTS // 2, rng
    ).wide
    fitted = np.concatenate([images[np.sort(some)], near])
    rows, original_rows = (one.encode(fitted) for one in encoders)
    content = pair.compressed.read_bytes()
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
