"""Many chains at once: their queries are gathered into batches, several of which are under way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, Protocol

from edgeflare.campaign.chain import Chain
from edgeflare.campaign.pipeline import Pipeline
from edgeflare.core.evaluated_query import EvaluatedQuery
from edgeflare.core.query import Query

ChainBatch = list[tuple[Chain, Sequence[Query]]]
"""Chains, and what each of them asks."""


class ChainPhase(Protocol):
    """Chains that are run together, and what becomes of each."""

    def open(self, number: int) -> Chain:
        """Return the chain of that number; it has been told what is known of it."""

    def keep_or_end(self, chain: Chain) -> bool:
        """Return whether a chain goes on; record what became of it if not."""

    def stopped(self) -> bool:
        """Return whether nothing more should be asked."""

    def add_time(self, device_busy_seconds: float) -> None:
        """Take the time of a batch whose answers were told; called in its transaction."""

    def report(self) -> None:
        """Show how far the phase is, after each batch."""


class ChainAnswer(NamedTuple):
    """The answer to one query of a chain; `step` counts the chain's answers from 1."""

    chain: Chain
    step: int
    query: Query
    evaluated: EvaluatedQuery


class ChainRecord:
    """The record of the chains' answers; this base class keeps none and adds no queries."""

    def transaction(self) -> AbstractContextManager[None]:
        """Return a context inside which all that is written is kept or lost together."""
        return nullcontext()

    def further_queries(
        self,
        queries: Sequence[Query],  # noqa: ARG002 - for records that ask more
        seed_ids: Sequence[int],  # noqa: ARG002
    ) -> tuple[list[Query], list[int]]:
        """Return queries to add to a batch, such as canaries, and the seed of each."""
        return [], []

    def write(self, answers: Sequence[ChainAnswer], further: Sequence[EvaluatedQuery]) -> None:
        """Keep the answers of a batch, and those to its added queries."""

    def check(self) -> None:
        """Check the answers to the further queries, after the transaction in which they are kept.

        Raises:
            InfrastructureError: a device is not to be relied on.

        """


def run_chains(
    phase: ChainPhase,
    record: ChainRecord,
    pipeline: Pipeline[ChainBatch],
    numbers: Iterable[int],
    *,
    most_open: int,
    batch_size: Callable[[float], int],
) -> None:
    """Run a phase's chains until each has ended or waits, or the phase is stopped.

    A batch of answers, and what became of the chains that were told them, is one transaction.

    Args:
        phase: what the chains are, and what becomes of them.
        record: where their answers are kept.
        pipeline: an empty pipeline.
        numbers: the chains, in the order in which they are opened.
        most_open: the most chains that are open at once.
        batch_size: returns how many queries make a batch, given the seconds that one takes; 0
            where that is not known yet.

    """
    waiting = deque(numbers)
    ready: deque[Chain] = deque()
    under_way = 0
    size = batch_size(0.0)
    while True:
        while waiting and len(ready) + under_way < most_open:
            chain = phase.open(waiting.popleft())
            with record.transaction():
                ready += [chain] if phase.keep_or_end(chain) else []
        while ready and not pipeline.full and not phase.stopped():
            batch = _next_batch(ready, size)
            under_way += len(batch)
            _put(record, batch, pipeline)
        if not len(pipeline):
            return
        answered = pipeline.take()
        under_way -= len(answered.ticket)
        with record.transaction():
            answers = _tell(answered.ticket, answered.evaluated)
            record.write(answers, answered.evaluated[len(answers) :])
            ready += [chain for chain, _ in answered.ticket if phase.keep_or_end(chain)]
            phase.add_time(answered.device_busy_seconds)
        record.check()
        size = batch_size(answered.mean_seconds)
        phase.report()


def _next_batch(ready: deque[Chain], size: int) -> ChainBatch:
    """Take chains until their queries fill a batch."""
    batch: ChainBatch = []
    queries = 0
    while ready and queries < size:
        chain = ready.popleft()
        asked = chain.strategy.ask()
        batch.append((chain, asked))
        queries += len(asked)
    return batch


def _put(record: ChainRecord, batch: ChainBatch, pipeline: Pipeline[ChainBatch]) -> None:
    """Begin to evaluate what chains ask, and the further queries that are due."""
    queries = [query for _, asked in batch for query in asked]
    seed_ids = [chain.seed_id for chain, asked in batch for _ in asked]
    further, further_ids = record.further_queries(queries, seed_ids)
    pipeline.put(batch, [*queries, *further], [*seed_ids, *further_ids])


def _tell(batch: ChainBatch, evaluated: Sequence[EvaluatedQuery]) -> list[ChainAnswer]:
    """Tell the chains of a batch their answers, and return these."""
    answers = []
    begin = 0
    for chain, queries in batch:
        part = evaluated[begin : begin + len(queries)]
        begin += len(queries)
        answers += [
            ChainAnswer(chain, chain.steps + k, query, one)
            for k, (query, one) in enumerate(zip(queries, part, strict=True), start=1)
        ]
        chain.tell(part)
    return answers
