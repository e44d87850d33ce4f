"""What the journal is told of a campaign at its beginning."""

from __future__ import annotations

import os

from msgspec import structs

from edgeflare import __version__
from edgeflare.campaign.opened_pair import OpenedPair
from edgeflare.campaign.plan_defaults import settle_plan
from edgeflare.core.query import Arm
from edgeflare.core.truths import KeptTargets
from edgeflare.models.model_variables import pair_variables
from edgeflare.models.pair import Pair
from edgeflare.models.run_host import describe_host
from edgeflare.models.run_pair import RunPair
from edgeflare.python_callable import is_callable
from edgeflare.run.plan import Plan
from edgeflare.run.run_document import RunDevice
from edgeflare.run.run_header import RunHeader
from edgeflare.run.seed_ids import SeedIds


def describe_run(opened: OpenedPair, plan: Plan) -> RunHeader:
    """Return the header of a campaign's run, with the plan settled.

    Raises:
        UserError: there are fewer queries than seeds, or no such seeds.

    """
    seeds = opened.seeds
    labels, names = seeds.labels, seeds.names
    return RunHeader(
        version=__version__,
        pair=_describe_pair(opened.pair),
        plan=settle_plan(plan, seeds, opened.ensemble, opened.pair),
        devices=tuple(
            RunDevice(name=device.profile.name, provenance=device.provenance)
            for device in opened.devices
        ),
        arms=opened.panel.reading.decoders,
        classes=opened.pair.classes or opened.panel.reading.decoders[Arm.DEVICE].names,
        labels=None if labels is None else tuple(labels.tolist()),
        targets=KeptTargets.of(seeds.targets),
        host=describe_host(opened.pair.original),
        names=() if names == tuple(map(str, seeds.seed_ids)) else names,
        all_seeds=SeedIds.of(seeds.seed_ids),
    )


def _describe_pair(pair: Pair) -> RunPair:
    return RunPair(
        name=pair.name,
        fingerprint=pair.fingerprint(),
        original=None if pair.original is None else _absolute(pair.original),
        compressed=os.path.abspath(pair.compressed),
        seeds=os.path.abspath(pair.seeds),
        sha256=pair.model_hashes(),
        folded_shapes=None if pair.folded is None else pair.folded.described(),
        functions=tuple(pair.function_hashes()),
        variables=pair_variables(pair),
        **structs.asdict(pair.interface.described()),
    )


def _absolute(original: str) -> str:
    """Return where an original is, from whatever folder; a module's name stays what it is."""
    module = original.rpartition(":")[0]
    named = is_callable(original) and not module.endswith(".py")
    return original if named else os.path.abspath(original)
