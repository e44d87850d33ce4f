"""Many chains at once: their queries are gathered into batches, several of which are under way."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Protocol

from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.campaign.chain import Chain
from edgeflare.campaign.pipeline import EvaluatedBatch, Pipeline
from edgeflare.core.query import Query
from edgeflare.errors import UserError
from edgeflare.run.journal_rows import Role
from edgeflare.run.stored_answers import from_rows, image_crc32, to_row

_Batch = list[tuple[Chain, Sequence[Query]]]


class ChainPhase(Protocol):
    """A phase of a campaign that consists of chains."""

    @property
    def role(self) -> Role:
        """The role that the journal keeps the chains' answers under."""

    def open(self, seed_id: int) -> Chain:
        """Return the chain of a seed; it has been told what the journal holds of it."""

    def keep_or_end(self, chain: Chain) -> bool:
        """Return whether a chain goes on; record what became of it if not."""

    def stopped(self) -> bool:
        """Return whether nothing more should be asked."""

    def add_time(self, device_busy_seconds: float) -> None:
        """Take the time of a batch whose answers were told; called in its transaction."""

    def report(self) -> None:
        """Show how far the phase is, after each batch."""


def run_chains(
    context: CampaignContext, phase: ChainPhase, seed_ids: Iterable[int], most_open: int
) -> None:
    """Run a phase's chains until each has ended or waits, or the phase is stopped.

    A batch of answers, and what became of the chains that were told them, is one transaction.

    Args:
        context: the campaign.
        phase: what the chains are, and what becomes of them.
        seed_ids: the seeds of the chains, in the order in which they are opened.
        most_open: the most chains that are open at once.

    """
    waiting = deque(seed_ids)
    ready: deque[Chain] = deque()
    pipeline: Pipeline[_Batch] = context.pipeline()
    under_way = 0
    size = context.batch_size(0.0)
    while True:
        while waiting and len(ready) + under_way < most_open:
            chain = phase.open(waiting.popleft())
            with context.journal.transaction():
                ready += [chain] if phase.keep_or_end(chain) else []
        while ready and not pipeline.full and not phase.stopped():
            batch = _next_batch(ready, size)
            under_way += len(batch)
            _put(context, batch, pipeline)
        if not len(pipeline):
            return
        answered = pipeline.take()
        under_way -= len(answered.ticket)
        with context.journal.transaction():
            told = _tell(context, phase.role, answered)
            context.health.canaries.record(answered.evaluated[told:])
            ready += [chain for chain, _ in answered.ticket if phase.keep_or_end(chain)]
            phase.add_time(answered.device_busy_seconds)
        context.health.canaries.check(context.ask_device)
        size = context.batch_size(answered.mean_seconds)
        phase.report()


def replay_answers(context: CampaignContext, role: Role, chain: Chain) -> None:
    """Tell a new chain the answers that the journal holds of it.

    Raises:
        UserError: the chain asks for other images than those that were answered.

    """
    rows = context.journal.steps(role, chain.seed_id)
    evaluated = from_rows(context.panel.reading, rows)
    while chain.steps < len(rows):
        asked = chain.strategy.ask()
        told = slice(chain.steps, chain.steps + len(asked))
        if not asked or [image_crc32(query.image) for query in asked] != [
            row.image_crc32 for row in rows[told]
        ]:
            raise UserError(
                f"{context.directory.path} cannot be continued: this installation draws "
                "other mutants than the one that began it; start anew with --overwrite"
            )
        chain.tell(evaluated[told])


def _next_batch(ready: deque[Chain], size: int) -> _Batch:
    """Take chains until their queries fill a batch."""
    batch: _Batch = []
    queries = 0
    while ready and queries < size:
        chain = ready.popleft()
        asked = chain.strategy.ask()
        batch.append((chain, asked))
        queries += len(asked)
    return batch


def _put(context: CampaignContext, batch: _Batch, pipeline: Pipeline[_Batch]) -> None:
    """Begin to evaluate what chains ask, and the canaries that are due."""
    queries = [query for _, asked in batch for query in asked]
    seed_ids = [chain.seed_id for chain, asked in batch for _ in asked]
    canaries, canary_ids = context.health.canaries.due(queries, seed_ids)
    pipeline.put(batch, [*queries, *canaries], [*seed_ids, *canary_ids])


def _tell(context: CampaignContext, role: Role, answered: EvaluatedBatch[_Batch]) -> int:
    """Tell the chains of a batch their answers, and write these down; return how many."""
    rows = []
    begin = 0
    for chain, queries in answered.ticket:
        part = answered.evaluated[begin : begin + len(queries)]
        begin += len(queries)
        rows += [
            to_row(role, chain.seed_id, chain.steps + k, query.image, one)
            for k, (query, one) in enumerate(zip(queries, part, strict=True), start=1)
        ]
        chain.tell(part)
    context.journal.write_answers(rows)
    return len(rows)
