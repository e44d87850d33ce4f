"""What a run found, tried again: no search, the stored inputs and their seeds only."""

from __future__ import annotations

from collections.abc import Iterator

from edgeflare.campaign.campaign import Interrupt, StoppedBy
from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.campaign.pipeline import Pipeline
from edgeflare.campaign.verification import verify
from edgeflare.core.answer import Image
from edgeflare.core.query import Query
from edgeflare.errors import InfrastructureError
from edgeflare.run.stored_answers import to_row

_Ticket = list[tuple[int, Image]]


def evaluate_again(setting: CampaignContext, interrupt: Interrupt) -> StoppedBy | None:
    """Evaluate the seeds of the journal's triggers once, and the triggers as verification does.

    Returns:
        What stopped it before its end, or None.

    Raises:
        InfrastructureError: a device was lost for good. The run is noted as stopped by that.

    """
    try:
        complete = _try_seeds(setting) and verify(setting)
    except InfrastructureError:
        setting.journal.note("stopped_by", "infrastructure")
        raise
    stopped: StoppedBy | None = None if complete and not interrupt.urgent() else "interrupt"
    setting.journal.note("stopped_by", stopped)
    return stopped


def _try_seeds(setting: CampaignContext) -> bool:
    known = setting.journal.answers("seed")
    paths = {row.seed_id: row.seed_image for row in setting.journal.triggers().values()}
    left = {seed_id: path for seed_id, path in paths.items() if seed_id not in known}
    done = len(paths) - len(left)
    pipeline: Pipeline[_Ticket] = setting.pipeline()
    for landed in pipeline.stream(_batches(setting, left)):
        with setting.journal.transaction():
            setting.journal.write_answers(
                to_row("seed", seed_id, 0, image, one)
                for (seed_id, image), one in zip(landed.ticket, landed.evaluated, strict=True)
            )
        done += len(landed.ticket)
        setting.observer.screened(done, len(paths))
    setting.stopwatch.lap("setup")
    return done == len(paths)


def _batches(
    setting: CampaignContext, paths: dict[int, str]
) -> Iterator[tuple[_Ticket, list[Query], list[int]]]:
    size = min(setting.batch_size(0.0), 16)
    seed_ids = list(paths)
    for at in range(0, len(seed_ids), size):
        if setting.stopped():
            return
        part = seed_ids[at : at + size]
        ticket = [(seed_id, setting.directory.load_image(paths[seed_id])) for seed_id in part]
        yield ticket, [Query(image, setting.panel.arms) for _, image in ticket], part
