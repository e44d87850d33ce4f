"""The triggers of a run and their seeds, evaluated again without a search."""

from __future__ import annotations

from edgeflare.campaign.campaign import StoppedBy
from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.campaign.input_evaluation import evaluate_inputs, verify
from edgeflare.core.input_space import Input
from edgeflare.core.interrupt import Interrupt


def evaluate_again(context: CampaignContext, interrupt: Interrupt) -> StoppedBy | None:
    """Evaluate the seeds of the journal's triggers once, and the triggers as verification does.

    Returns:
        What stopped it before its end, or None.

    Raises:
        InfrastructureError: a device was lost for good.

    """
    complete = _evaluate_seeds(context) and verify(context)
    return None if complete and not interrupt.urgent() else interrupt.by


def _evaluate_seeds(context: CampaignContext) -> bool:
    known = context.journal.answers("seed")
    paths = {row.seed_id: row.seed_image for row in context.journal.triggers().values()}
    left = [(seed_id, 0) for seed_id in paths if seed_id not in known]
    done = len(paths) - len(left)

    def load(seed_id: int) -> Input:
        return context.directory.load_input(paths[seed_id])

    for batch in evaluate_inputs(context, "seed", [left], load):
        done += len(batch)
        context.observer.screened(done, len(paths))
    context.stopwatch.lap("setup")
    return done == len(paths)
