"""Every finding is evaluated again from its stored file before it counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.campaign.pipeline import Pipeline
from edgeflare.core.answer import Image
from edgeflare.core.query import Query
from edgeflare.run.journal_rows import REPETITIONS
from edgeflare.run.stored_answers import to_row

_Ticket = list[tuple[int, int, Image]]
"""Seed ids, repetitions and images of a batch."""


def verify(context: CampaignContext) -> bool:
    """Verify what has not been verified yet; return False if it was stopped before the end."""
    done = {seed_id: len(rows) for seed_id, rows in context.journal.answers("verify").items()}
    paths = {seed_id: row.image for seed_id, row in context.journal.triggers().items()}
    rounds = [
        [(seed_id, n) for seed_id in paths if n >= done.get(seed_id, 0)] for n in range(REPETITIONS)
    ]
    left = sum(map(len, rounds))
    verified = 0
    pipeline: Pipeline[_Ticket] = context.pipeline()
    for landed in pipeline.stream(_batches(context, rounds, paths)):
        with context.journal.transaction():
            context.journal.write_answers(
                to_row("verify", seed_id, n, image, one)
                for (seed_id, n, image), one in zip(landed.ticket, landed.evaluated, strict=True)
            )
            context.stopwatch.lap("verify")
        verified += len(landed.ticket)
        context.observer.verified(verified, left)
    return verified == left


def _batches(
    context: CampaignContext, rounds: Sequence[Sequence[tuple[int, int]]], paths: Mapping[int, str]
) -> Iterator[tuple[_Ticket, list[Query], list[int]]]:
    size = min(context.batch_size(0.0), 16)
    for part in (left[at : at + size] for left in rounds for at in range(0, len(left), size)):
        if context.stopped():
            return
        ticket = [(seed_id, n, context.directory.load_image(paths[seed_id])) for seed_id, n in part]
        yield (
            ticket,
            [Query(image, context.panel.arms) for _, _, image in ticket],
            [seed_id for seed_id, _ in part],
        )
