"""How far values may be apart that count as the same, where nobody says it.

A tenth of how far the original's own values spread over the inputs is a ratio of 20 dB: what good
8-bit files of networks stay within.
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Final

import numpy as np

from edgeflare.campaign.pair_panel import host_arm
from edgeflare.campaign.plan_defaults import TWIN_KERNELS
from edgeflare.core.seeds import SeedChoice
from edgeflare.errors import UserError
from edgeflare.models.compressed_model import open_compressed
from edgeflare.models.evaluator import HostModel
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.original import open_original
from edgeflare.models.pair import Pair
from edgeflare.models.shape_folding import with_shapes_folded
from edgeflare.tasks.value_decoder import ValueAnswer

INPUTS: Final = 64
"""Inputs at most over which values are seen to spread."""

_SHARE: Final = 0.1
"""Share of their spread that values may be apart."""

_LEAST: Final = 2
"""Inputs from which on values spread."""


def measured_tolerance(pair: Pair) -> tuple[float, int] | None:
    """Return how far the values of a pair may be apart, and over how many inputs they were seen.

    The distance is Euclidean. The spread is the root of the mean squared distance of the original's
    values to their mean; where there is no original, of the compressed model's.

    Args:
        pair: a pair whose task is regression, with any tolerance.

    Returns:
        None where the values do not vary, or the models or inputs are not what they should be,
        which whoever opens the pair says.

    Raises:
        InfrastructureError: a worker process does not come up.

    """
    try:
        answers = _values(pair)
    except UserError:
        return None
    known = [one.values.astype(np.float64).ravel() for one in answers if one.failure is None]
    if len(known) < _LEAST:
        return None
    values = np.stack(known)
    spread = float(np.sqrt(np.square(values - values.mean(axis=0)).sum(axis=1).mean()))
    tolerance = float(f"{_SHARE * spread:.3g}")
    return (tolerance, len(known)) if np.isfinite(spread) and tolerance > 0.0 else None


def _values(pair: Pair) -> list[ValueAnswer]:
    with ExitStack() as stack:
        opened = stack.enter_context(with_shapes_folded(pair))
        twin = stack.enter_context(closing(open_compressed(opened, TWIN_KERNELS)))
        inputs = ModelInputs(pair.interface, twin.signature.inputs, str(pair.compressed))
        seeds = inputs.load(pair.seeds, SeedChoice(limit=INPUTS), pair.classes)
        name, taken = str(pair.compressed), inputs
        model: HostModel = twin
        if pair.original is not None:
            name, model = pair.original, stack.enter_context(closing(open_original(pair, inputs)))
            taken = ModelInputs(pair.interface, model.signature.inputs, name, like=inputs)
        arm = host_arm(opened, name, model, taken, seeds)
        batch = arm.submit(arm.given(seeds.inputs, seeds.seed_ids)).result()
        return [one for one in arm.decoder.read(batch) if isinstance(one, ValueAnswer)]
