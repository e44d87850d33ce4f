"""Many chains at once: their queries are gathered into batches, several of which are under way.

Each device has a lane: its chains, its batches and its pipeline. So one that is too hot or lost
holds up its own chains alone, and the order of the journal differs from run to run while no result
does. Lanes ask in the main thread, which alone writes to the journal. Only a lost device is brought
back in another thread, unless its lane is the last one left: then the main thread does it, since it
alone receives signals.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.campaign.chain import Chain
from edgeflare.campaign.pipeline import Pipeline
from edgeflare.core.query import EvaluatedQuery, Query
from edgeflare.errors import EdgeFlareError, UserError
from edgeflare.run.answer_rows import from_rows, input_crc32, to_row
from edgeflare.run.journal_rows import Role
from edgeflare.run.seed_ids import device_of

_HELD_UP_SECONDS = 0.5
"""Seconds between two questions whether a lane, such as one that was too hot, may ask again."""

_OPENING_SECONDS = 1.0
"""Seconds for which chains are opened, one after the other, before what they ask is sent."""

_ChainBatch = list[tuple[Chain, Sequence[Query]]]
"""Chains, and what each of them asks."""


class ChainPhase(Protocol):
    """A phase of a campaign that consists of chains, one for each of some seeds."""

    @property
    def role(self) -> Role:
        """The role that the journal keeps the chains' answers under."""

    def open(self, seed_id: int) -> Chain:
        """Return the chain of a seed; it has been told what is known of it."""

    def keep_or_end(self, chain: Chain) -> bool:
        """Return whether a chain goes on; record what became of it if not."""

    def stopped(self) -> bool:
        """Return whether nothing more should be asked."""

    def add_time(self, device_busy_seconds: float) -> None:
        """Take the time since it was last taken, that of a batch or of opening chains.

        It is called in the transaction in which that is recorded.
        """

    def report(self) -> None:
        """Show how far the phase is, after each batch, and each second in which chains opened."""


def run_chains(
    context: CampaignContext, phase: ChainPhase, seed_ids: Iterable[int], most_open: int
) -> None:
    """Run a phase's chains until each has ended or waits, or the phase is stopped.

    Their answers are kept in the journal: a batch of them, and what became of the chains that were
    told them, is one transaction. No lane waits for another one.

    Args:
        context: the campaign.
        phase: what the chains are, and what becomes of them.
        seed_ids: the seeds of the chains, in the order in which they are opened.
        most_open: the most chains that are open at once; the lanes share it equally.

    Raises:
        InfrastructureError: a lane cannot go on; what was under way in the others is kept.

    """
    left = _lanes(context, seed_ids)
    record, most_of_lane = _JournalRecord(context, phase.role), max(1, most_open // len(left))
    run = _ChainRun(phase, record, most_of_lane, context.batch_size)
    failure: EdgeFlareError | None = None
    with ThreadPoolExecutor(len(left)) as recoveries:
        while left:
            answered = held_up = False
            for lane in tuple(left):
                # The last lane has a lost device brought back by the main thread, which alone
                # receives signals.
                executor = recoveries if len(left) > 1 else None
                try:
                    held = failure is None and run.send(lane)
                    received = run.receive(lane, executor)
                except EdgeFlareError as error:
                    failure = failure or error
                    left.remove(lane)
                    continue
                answered |= received
                held_up |= held
                if not (received or held or len(lane.pipeline)):
                    left.remove(lane)
            if left and not answered:
                _wait(left, held_up=held_up)
    if failure is not None:
        raise failure


@dataclass(slots=True)
class _Lane:
    """Chains whose queries share batches, such as all those of one device.

    Attributes:
        pipeline: an empty pipeline for their batches.
        waiting: the seeds whose chains are not open, in the order in which they are opened.
        may_ask: returns whether another batch may be sent now; raises InfrastructureError where
            none may be sent any more.
        size: how many queries make a batch.
        ready: open chains that are not under way.
        under_way: how many chains are.

    """

    pipeline: Pipeline[_ChainBatch]
    waiting: deque[int]
    may_ask: Callable[[], bool]
    size: int
    ready: deque[Chain] = field(default_factory=deque)
    under_way: int = 0


def _lanes(context: CampaignContext, seed_ids: Iterable[int]) -> list[_Lane]:
    """Return a lane for each device, with the seeds that the device is given."""
    devices = context.panel.devices
    lanes = [
        _Lane(
            Pipeline(context.panel, context.recover),
            deque(),
            partial(context.health.thermometer.is_cool, index),
            context.batch_size(0.0),
        )
        for index in range(devices)
    ]
    for seed_id in seed_ids:
        lanes[device_of(seed_id, devices)].waiting.append(seed_id)
    return lanes


@dataclass(frozen=True, slots=True)
class _ChainRun:
    """A phase that is run, lane by lane."""

    phase: ChainPhase
    record: _JournalRecord
    most_open: int
    batch_size: Callable[[float], int]

    def send(self, lane: _Lane) -> bool:
        """Send what chains ask; return whether the lane has more to ask, but may not now."""
        self._open(lane)
        while lane.ready and not lane.pipeline.full and not self.phase.stopped():
            if not lane.may_ask():
                return True
            batch = _next_batch(lane.ready, lane.size)
            lane.under_way += len(batch)
            queries = [query for _, asked in batch for query in asked]
            seed_ids = [chain.seed_id for chain, asked in batch for _ in asked]
            further, further_ids = self.record.further_queries(queries, seed_ids)
            lane.pipeline.put(batch, [*queries, *further], [*seed_ids, *further_ids])
        return False

    def _open(self, lane: _Lane) -> None:
        """Open the chains that wait, as many as may be open.

        A chain that follows gradients searches as soon as it is opened. So where that takes long,
        what it found is asked about before the next one is opened.
        """
        phase, begin = self.phase, time.monotonic()
        while lane.waiting and len(lane.ready) + lane.under_way < self.most_open:
            if phase.stopped():
                return
            chain = phase.open(lane.waiting.popleft())
            seconds = time.monotonic() - begin
            with self.record.transaction():
                lane.ready += [chain] if phase.keep_or_end(chain) else []
                if seconds > _OPENING_SECONDS:
                    phase.add_time(0.0)
            if seconds > _OPENING_SECONDS:
                phase.report()
                if lane.ready:
                    return
                begin = time.monotonic()

    def receive(self, lane: _Lane, executor: Executor | None) -> bool:
        """Tell the chains of the lane's oldest batch their answers; return whether there were any.

        Without an executor it waits for them; with one it does not, and a lost device is brought
        back by the executor.
        """
        if not len(lane.pipeline):
            return False
        answered = lane.pipeline.take() if executor is None else lane.pipeline.poll(executor)
        if answered is None:
            return False
        phase, record = self.phase, self.record
        lane.under_way -= len(answered.ticket)
        with record.transaction():
            answers = _tell(answered.ticket, answered.evaluated)
            record.write(answers, answered.evaluated[len(answers) :])
            lane.ready += [chain for chain, _ in answered.ticket if phase.keep_or_end(chain)]
            phase.add_time(answered.device_busy_seconds)
        record.check()
        lane.size = self.batch_size(answered.mean_seconds)
        phase.report()
        return True


def _wait(lanes: Sequence[_Lane], *, held_up: bool) -> None:
    """Wait until one of the lanes may have something to receive or to send."""
    under_way = [lane.pipeline.awaited for lane in lanes if len(lane.pipeline)]
    if not under_way:
        time.sleep(_HELD_UP_SECONDS)
    elif all(under_way):
        wait(
            [awaited[0] for awaited in under_way],
            timeout=_HELD_UP_SECONDS if held_up else None,
            return_when=FIRST_COMPLETED,
        )


def _next_batch(ready: deque[Chain], size: int) -> _ChainBatch:
    """Take chains until their queries fill a batch."""
    batch: _ChainBatch = []
    queries = 0
    while ready and queries < size:
        chain = ready.popleft()
        asked = chain.strategy.ask()
        batch.append((chain, asked))
        queries += len(asked)
    return batch


def _tell(batch: _ChainBatch, evaluated: Sequence[EvaluatedQuery]) -> list[_ChainAnswer]:
    """Tell the chains of a batch their answers, and return these."""
    answers = []
    begin = 0
    for chain, queries in batch:
        part = evaluated[begin : begin + len(queries)]
        begin += len(queries)
        answers += [
            _ChainAnswer(chain, chain.steps + k, query, answered)
            for k, (query, answered) in enumerate(zip(queries, part, strict=True), start=1)
        ]
        chain.tell(part)
    return answers


class _ChainAnswer(NamedTuple):
    """The answer to one query of a chain; `step` counts the chain's answers from 1."""

    chain: Chain
    step: int
    query: Query
    evaluated: EvaluatedQuery


class _JournalRecord:
    """Keeps the answers of chains in the journal, and asks the canaries that are due."""

    def __init__(self, context: CampaignContext, role: Role) -> None:
        self._context = context
        self._role = role
        self._reading = context.panel.reading

    def transaction(self) -> AbstractContextManager[None]:
        """Return a context inside which all that is written is kept or lost together."""
        return self._context.journal.transaction()

    def further_queries(
        self, queries: Sequence[Query], seed_ids: Sequence[int]
    ) -> tuple[list[Query], list[int]]:
        """Return queries to add to a batch, the canaries that are due, and the seed of each."""
        return self._context.health.canaries.due(queries, seed_ids)

    def write(self, answers: Sequence[_ChainAnswer], further: Sequence[EvaluatedQuery]) -> None:
        """Keep the answers of a batch, and those to its added queries."""
        self._context.journal.write_batch(
            [
                to_row(self._reading, self._role, chain.seed_id, step, query.input, evaluated)
                for chain, step, query, evaluated in answers
            ]
        )
        self._context.health.canaries.record(answers[0].chain.seed_id, further)

    def check(self) -> None:
        """Check the answers to the canaries, after the transaction in which they are kept.

        Raises:
            InfrastructureError: a device is not to be relied on.

        """
        self._context.health.canaries.check(self._context.ask_device)


def replay_answers(context: CampaignContext, role: Role, chain: Chain) -> None:
    """Tell a new chain the answers that the journal holds of it.

    Raises:
        UserError: the chain asks for other inputs than those that were answered.

    """
    rows = context.journal.steps(role, chain.seed_id)
    evaluated = from_rows(context.panel.reading, rows)
    while chain.steps < len(rows):
        asked = chain.strategy.ask()
        answered = slice(chain.steps, chain.steps + len(asked))
        if not asked or [input_crc32(query.input) for query in asked] != [
            row.image_crc32 for row in rows[answered]
        ]:
            raise UserError(
                f"{context.directory.path} cannot be continued: this installation draws "
                "other mutants than the one that began it; start anew with --overwrite"
            )
        chain.tell(evaluated[answered])
