"""Findings evaluated again, from their stored files, before they count."""

from __future__ import annotations

from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.campaign.input_evaluation import evaluate_inputs
from edgeflare.core.input import Input
from edgeflare.run.journal_rows import REPETITIONS


def verify(context: CampaignContext) -> bool:
    """Verify what has not been verified yet; return False if it was stopped before the end."""
    done = {seed_id: len(rows) for seed_id, rows in context.journal.answers("verify").items()}
    paths = {seed_id: row.image for seed_id, row in context.journal.triggers().items()}
    rounds = [
        [(seed_id, n) for seed_id in paths if n >= done.get(seed_id, 0)] for n in range(REPETITIONS)
    ]
    left = sum(map(len, rounds))
    verified = 0

    def load(seed_id: int) -> Input:
        return context.directory.load_input(paths[seed_id])

    def add_time() -> None:
        context.stopwatch.lap("verify")

    for batch in evaluate_inputs(context, "verify", rounds, load, end_batch=add_time):
        verified += len(batch)
        context.observer.verified(verified, left)
    return verified == left
