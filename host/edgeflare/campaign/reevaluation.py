"""What a run found, tried again: no search, the stored inputs and their seeds only."""

from __future__ import annotations

from collections.abc import Iterator

from edgeflare.campaign.campaign import Interrupt, StoppedBy
from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.campaign.pipeline import Pipeline
from edgeflare.campaign.verification import verify
from edgeflare.core.answer import Image
from edgeflare.core.query import Query
from edgeflare.run.stored_answers import to_row

_Ticket = list[tuple[int, Image]]


def evaluate_again(context: CampaignContext, interrupt: Interrupt) -> StoppedBy | None:
    """Evaluate the seeds of the journal's triggers once, and the triggers as verification does.

    Returns:
        What stopped it before its end, or None.

    Raises:
        InfrastructureError: a device was lost for good.

    """
    complete = _try_seeds(context) and verify(context)
    return None if complete and not interrupt.urgent() else "interrupt"


def _try_seeds(context: CampaignContext) -> bool:
    known = context.journal.answers("seed")
    paths = {row.seed_id: row.seed_image for row in context.journal.triggers().values()}
    left = {seed_id: path for seed_id, path in paths.items() if seed_id not in known}
    done = len(paths) - len(left)
    pipeline: Pipeline[_Ticket] = context.pipeline()
    for landed in pipeline.stream(_batches(context, left)):
        with context.journal.transaction():
            context.journal.write_answers(
                to_row("seed", seed_id, 0, image, one)
                for (seed_id, image), one in zip(landed.ticket, landed.evaluated, strict=True)
            )
        done += len(landed.ticket)
        context.observer.screened(done, len(paths))
    context.stopwatch.lap("setup")
    return done == len(paths)


def _batches(
    context: CampaignContext, paths: dict[int, str]
) -> Iterator[tuple[_Ticket, list[Query], list[int]]]:
    size = min(context.batch_size(0.0), 16)
    seed_ids = list(paths)
    for at in range(0, len(seed_ids), size):
        if context.stopped():
            return
        part = seed_ids[at : at + size]
        ticket = [(seed_id, context.directory.load_image(paths[seed_id])) for seed_id in part]
        yield ticket, [Query(image, context.panel.arms) for _, image in ticket], part
