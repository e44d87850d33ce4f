"""Which seeds a search has, found out on the host alone."""

from __future__ import annotations

from contextlib import closing

from edgeflare.campaign.plan_defaults import default_ensemble
from edgeflare.models.compressed_model import open_compressed
from edgeflare.models.folded_pair import with_shapes_folded
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair import Pair
from edgeflare.run.plan import Plan
from edgeflare.run.seed_ids import SeedIds


def taken_seeds(pair: Pair, plan: Plan) -> SeedIds:
    """Return the ids of the seeds of a pair that are searched where none are named.

    Args:
        pair: whose compressed model says what the seeds have to fit.
        plan: of the search, which says how many are taken.

    Raises:
        UserError: the model or the seeds are not what they should be.

    """
    kernels = (plan.ensemble or default_ensemble(pair, plan.goal.find))[0]
    with with_shapes_folded(pair) as folded, closing(open_compressed(folded, kernels)) as twin:
        inputs = ModelInputs(pair.interface, twin.signature.inputs, str(pair.compressed))
        return SeedIds.of(inputs.load(pair.seeds, plan.choice).seed_ids)
