"""What a plan leaves open until the pair is known: ensemble, operators, bounds, parameters."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from edgeflare.core.goal import Find
from edgeflare.core.seeds import Seeds
from edgeflare.errors import UserError
from edgeflare.models.compressed_model import compressed_bytes
from edgeflare.models.pair import Pair
from edgeflare.run.plan import Plan
from edgeflare.search.operator_pool import pool_names
from edgeflare_protos.kernel_sets import Kernels

TWIN_KERNELS: Final = "xnnpack"
"""The host's kernels that run the twin: what a runtime does by itself."""

CHEAP_MODEL_BYTES = 4 * 2**20
"""The largest compressed model whose ensemble holds the reference kernels unless told otherwise.
They take 16 to 40 times XNNPACK's time; above, the optimized built-in kernels stand in, which take
about 4 times (ResNet-20: 9.6, 1.0 and 0.24 ms)."""


def default_ensemble(pair: Pair, find: Find) -> tuple[Kernels, ...]:
    """Return an ensemble of two where kernels are looked for, and the twin alone elsewhere.

    Raises:
        UserError: the compressed model is no model file.

    """
    if find is not Find.KERNEL:
        return (TWIN_KERNELS,)
    cheap = compressed_bytes(pair) <= CHEAP_MODEL_BYTES
    return (TWIN_KERNELS, "reference" if cheap else "builtin")


def settle_plan(plan: Plan, seeds: Seeds, ensemble: tuple[Kernels, ...], pair: Pair) -> Plan:
    """Return the plan with the ensemble that was opened, its operators, bounds and parameters.

    Raises:
        UserError: there are fewer queries than seeds, or no such seeds.

    """
    if plan.seed_ids is not None and plan.seed_ids.last >= len(seeds):
        raise UserError(
            f"--seed-ids names seed {plan.seed_ids.last}, and {pair.name} has {len(seeds)}"
            f" (0 to {len(seeds) - 1}{', by --limit' if plan.limit == len(seeds) else ''})"
        )
    if plan.total_queries is not None and plan.total_queries < len(seeds):
        raise UserError(
            f"--total-queries {plan.total_queries} is less than one for each of {len(seeds)} seeds:"
            " raise it, or take fewer seeds with --limit"
        )
    domain, task = pair.interface.domain, pair.interface.opened_task
    size = int(np.prod(seeds.inputs.shape[1:]))
    operators = pool_names(domain.name, plan.operators)
    parameters = {**task.search_parameters.get(plan.strategy, {}), **plan.parameters}
    return replace(plan.settled(ensemble, size, operators, domain), parameters=parameters)
