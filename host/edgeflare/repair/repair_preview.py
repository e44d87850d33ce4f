"""What a repair would do, said without doing it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from edgeflare.campaign.pair_panel import open_pair
from edgeflare.devices.profile import Profile
from edgeflare.models.pair import Pair
from edgeflare.repair.candidate_plans import candidate_plans
from edgeflare.repair.judging.judgement_inputs import COUNT, known_labels, split_seeds
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.repair.repair_requirements import original_file, require_seeds, tries_shifts
from edgeflare.repair.repair_run import repair_plan
from edgeflare.replay.past_run import PastRun


def planned_repair(
    pair: Pair,
    past: PastRun | None,
    profiles: Sequence[Profile],
    request: RepairRequest,
) -> str:
    """Open models and devices, and say in sentences what `repair_pair` would do.

    Args: as of `repair_pair`.

    Raises:
        UserError: as by `repair_pair`, as far as that is known before anything is fitted.
        InfrastructureError: a device does not come up.

    """
    plans = candidate_plans(request)
    original = original_file(pair, past, request)
    with ExitStack() as stack:
        opened = open_pair(pair, repair_plan(past, profiles, request.limit), profiles, stack)
        require_seeds(pair.name, len(opened.seeds))
        if request.test is not None:
            opened.inputs.load(Path(request.test), classes=opened.pair.classes)
        split = split_seeds(known_labels(opened), np.random.default_rng(request.rng_seed))
        names = []
        if original is not None:
            names = [
                one.name
                if one.instead_of is None
                else f"{one.name} where {one.instead_of} is beyond the limits"
                for one in plans
            ]
        if tries_shifts(past, request):
            names.append("shifts")
        devices = [device.profile.name for device in opened.devices]
    return (
        f"{split.sizes}. Candidates: {', '.join(names)}; on {', '.join(devices)}. Each is judged on"
        f" up to {COUNT:,} inputs a set, and chosen within --max-size {request.max_size} and"
        f" --max-latency {request.max_latency}."
    )
