"""What a plan leaves open until its pair is known: ensemble, seeds, operators and the like."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Final

import numpy as np

from edgeflare.core.goal import Find
from edgeflare.core.seeds import Seeds
from edgeflare.errors import UserError
from edgeflare.models.compressed_model import compressed_bytes, open_compressed
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair import Pair
from edgeflare.models.shape_folding import with_shapes_folded
from edgeflare.run.plan import Plan
from edgeflare.run.seed_ids import SeedIds
from edgeflare.strategies.operator_pool import pool_names
from edgeflare.strategies.strategy_registry import find_strategy, strategy_names
from edgeflare_protos.kernel_sets import TFLiteKernels

TWIN_KERNELS: Final = "xnnpack"
"""The host's kernels that run the twin: what a runtime does by itself."""

_MOST_SHOWN: Final = 60
"""Characters of a list of ids that a message shows."""

CHEAP_MODEL_BYTES = 4 * 2**20
"""The largest compressed model whose ensemble holds the reference kernels unless told otherwise.
They take 16 to 40 times XNNPACK's time; above, the optimized built-in kernels stand in, which take
about 4 times (ResNet-20: 9.6, 1.0 and 0.24 ms)."""


def default_ensemble(pair: Pair, find: Find) -> tuple[TFLiteKernels, ...]:
    """Return an ensemble of two where kernels are looked for, and the twin alone elsewhere.

    Raises:
        UserError: the compressed model is no model file.

    """
    if find is not Find.KERNEL:
        return (TWIN_KERNELS,)
    cheap = compressed_bytes(pair) <= CHEAP_MODEL_BYTES
    return (TWIN_KERNELS, "reference" if cheap else "builtin")


def require_seed_ids(plan: Plan, taken: SeedIds, pair: str) -> None:
    """Refuse a plan that names seeds which are not there.

    Args:
        plan: names some, or none.
        taken: ids of the seeds that it takes of the pair.
        pair: name of the pair.

    """
    unknown = next((seed_id for seed_id in plan.seed_ids or () if seed_id not in taken), None)
    if unknown is None:
        return
    said = f"--seed-ids names seed {unknown}, and"
    if not plan.choice.takes_all:
        option = f"--limit {plan.limit}" if plan.first is None else f"--first {plan.first}"
        ids = str(taken)
        ids = ids if len(ids) <= _MOST_SHOWN else f"{ids[:_MOST_SHOWN]}…"
        raise UserError(f"{said} {option} takes {ids}: name some of these, or leave out {option}")
    raise UserError(f"{said} {pair} has {len(taken)} (0 to {taken.last})")


def settle_plan(plan: Plan, seeds: Seeds, ensemble: tuple[TFLiteKernels, ...], pair: Pair) -> Plan:
    """Return the plan with the ensemble that was opened, its operators, bounds and parameters.

    Raises:
        UserError: there are fewer queries than seeds, or no such seeds.

    """
    if plan.seed_ids is not None:
        require_seed_ids(plan, SeedIds.of(seeds.seed_ids), pair.name)
    if plan.total_queries is not None and plan.total_queries < len(seeds):
        raise UserError(
            f"--total-queries {plan.total_queries} is less than one for each of {len(seeds)} seeds:"
            " raise it, or take fewer seeds with --limit"
        )
    domain, task = pair.interface.domain, pair.interface.opened_task
    size = int(np.prod(seeds.inputs.shape[1:]))
    operators = pool_names(domain.name, plan.operators)
    parameters = {**task.search_parameters.get(plan.strategy, {}), **plan.parameters}
    searches = plan.strategy in strategy_names()  # none has the name of what finds by no search
    return replace(
        plan.settled(ensemble, size, operators, domain),
        parameters=parameters,
        strategy_version=find_strategy(plan.strategy).strategy.version if searches else 1,
    )


def taken_seeds(pair: Pair, plan: Plan) -> SeedIds:
    """Return the ids of the seeds of a pair that are searched where none are named.

    Args:
        pair: pair whose compressed model says what the seeds have to fit.
        plan: plan of the search, which says how many are taken.

    Raises:
        UserError: the model or the seeds are not what they should be.

    """
    kernels = (plan.ensemble or default_ensemble(pair, plan.goal.find))[0]
    with with_shapes_folded(pair) as folded, closing(open_compressed(folded, kernels)) as twin:
        inputs = ModelInputs(pair.interface, twin.signature.inputs, str(pair.compressed))
        return SeedIds.of(inputs.load(pair.seeds, plan.choice, pair.classes).seed_ids)
