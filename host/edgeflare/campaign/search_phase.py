"""The search itself: many chains in the air, batches in flight, and a journal of every answer."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from edgeflare.campaign.budget import Spent, first_allowance, next_allowance
from edgeflare.campaign.chain import Chain, chain_generator
from edgeflare.campaign.panel import Evaluated
from edgeflare.campaign.pipeline import Pipeline
from edgeflare.campaign.recall import from_rows, image_crc32, to_row
from edgeflare.campaign.rows import Ended
from edgeflare.campaign.setting import Progress, Setting
from edgeflare.campaign.triggers import store_trigger
from edgeflare.errors import UserError
from edgeflare.search.outcome import Outcome
from edgeflare.search.strategy import Donor, Query, Start, Told

FOLDER = "findings"

_Batch = list[tuple[Chain, Sequence[Query]]]


class SearchPhase:
    """Searches from every seed that does not deviate itself.

    What a chain does depends on its seed, its generator and the answers alone, never on which
    other chains are open; so the number of chains and the timing change no result.
    """

    def __init__(self, setting: Setting, seeds: Mapping[int, Outcome]) -> None:
        """Prepare the search; `seeds` are the outcomes of the seeds to search from, by id."""
        self._setting = setting
        self._seeds = seeds
        self._donors = tuple(Donor(setting.images[i], seeds[i]) for i in sorted(seeds))
        self._ended = setting.journal.chains()
        self._suspended: dict[int, Chain] = {}
        self._queries = sum(row.queries for row in self._ended.values())
        self._device_queries = sum(row.device_queries for row in self._ended.values())
        self._seconds_before = setting.journal.times().wall
        setting.health.canaries.begin(setting.panel.reading)

    def run(self) -> bool:
        """Search until every chain has ended; return False if it was stopped before."""
        plan = self._setting.plan
        allowance: int | None = first_allowance(
            len(self._seeds), plan.max_queries, plan.total_queries
        )
        while allowance is not None:
            self._run_pass(allowance)
            if self._stopped():
                return False
            allowance = next_allowance(
                allowance, self._spent(), plan.max_queries, plan.total_queries
            )
        with self._setting.journal.transaction():
            for chain in self._suspended.values():
                self._end(chain, "total-queries")
        return True

    def _run_pass(self, allowance: int) -> None:
        """Let every chain spend up to the allowance, or end."""
        setting = self._setting
        waiting = deque(seed_id for seed_id in self._seeds if seed_id not in self._ended)
        ready: deque[Chain] = deque()
        pipeline: Pipeline[_Batch] = setting.pipeline()
        in_flight = 0
        size = setting.batch_size(0.0)
        while True:
            while waiting and len(ready) + in_flight < setting.chains:
                self._place(self._chain(waiting.popleft()), ready, allowance)
            while ready and not pipeline.full and not self._stopped():
                batch = _next_batch(ready, size)
                in_flight += len(batch)
                self._put(batch, pipeline)
            if not len(pipeline):
                return
            landed = pipeline.take()
            in_flight -= len(landed.ticket)
            with setting.journal.transaction():
                told = self._tell(landed.ticket, landed.evaluated)
                setting.health.canaries.write(landed.evaluated[told:])
                for chain, _ in landed.ticket:
                    self._place(chain, ready, allowance)
                setting.stopwatch.lap("wall", landed.device_busy_seconds)
            setting.health.canaries.judge(setting.ask_device)
            size = setting.batch_size(landed.mean_seconds)
            setting.observer.searched(self._progress())

    def _chain(self, seed_id: int) -> Chain:
        """Return a chain that was suspended, or a new one, told what the journal has of it."""
        suspended = self._suspended.pop(seed_id, None)
        if suspended is not None:
            return suspended
        setting = self._setting
        rng = chain_generator(setting.plan.rng_seed, seed_id)
        goal = setting.plan.goal
        start = Start(
            setting.images[seed_id],
            self._seeds[seed_id],
            goal,
            rng,
            setting.plan.bounds,
            setting.panel.members,
            self._donors,
        )
        chain = Chain(seed_id, Told(setting.tale(start)), goal)
        self._replay(chain)
        return chain

    def _replay(self, chain: Chain) -> None:
        rows = self._setting.journal.steps(chain.seed_id)
        evaluated = from_rows(self._setting.panel.reading, rows)
        while chain.steps < len(rows):
            asked = chain.strategy.ask()
            told = slice(chain.steps, chain.steps + len(asked))
            if [image_crc32(query.image) for query in asked] != [
                row.image_crc32 for row in rows[told]
            ]:
                raise UserError(
                    f"{self._setting.directory.path} cannot be continued: this installation draws "
                    "other mutants than the one that began it; start anew with --overwrite"
                )
            chain.tell(evaluated[told])
        self._queries += chain.queries
        self._device_queries += chain.device_queries

    def _put(self, batch: _Batch, pipeline: Pipeline[_Batch]) -> None:
        """Begin to evaluate what chains ask, and the canaries that are due."""
        setting = self._setting
        queries = [query for _, asked in batch for query in asked]
        seed_ids = [chain.seed_id for chain, asked in batch for _ in asked]
        canaries, canary_ids = setting.health.canaries.due(queries, seed_ids)
        pipeline.put(batch, [*queries, *canaries], [*seed_ids, *canary_ids])

    def _tell(self, batch: _Batch, evaluated: Sequence[Evaluated]) -> int:
        """Tell the chains of a batch their answers, and write these down; return how many."""
        rows = []
        begin = 0
        for chain, queries in batch:
            part = evaluated[begin : begin + len(queries)]
            begin += len(queries)
            rows += [
                to_row("step", chain.seed_id, chain.steps + k, query.image, one)
                for k, (query, one) in enumerate(zip(queries, part, strict=True), start=1)
            ]
            self._queries -= chain.queries
            self._device_queries -= chain.device_queries
            chain.tell(part)
            self._queries += chain.queries
            self._device_queries += chain.device_queries
        self._setting.journal.write_answers(rows)
        return len(rows)

    def _place(self, chain: Chain, ready: deque[Chain], allowance: int) -> None:
        """End a chain, suspend it until the next pass, or let it go on."""
        plan = self._setting.plan
        ended = chain.ending(plan.max_queries, plan.time_limit)
        if ended is not None:
            self._end(chain, ended)
        elif chain.affords(allowance):
            ready.append(chain)
        else:
            self._suspended[chain.seed_id] = chain

    def _end(self, chain: Chain, ended: Ended) -> None:
        setting = self._setting
        trigger = chain.trigger
        if trigger is not None:
            store_trigger(setting, FOLDER, chain.seed_id, trigger)
        row = chain.row(ended)
        setting.journal.end_chain(row)
        self._ended[chain.seed_id] = row

    def _spent(self) -> Iterable[Spent]:
        for seed_id in self._seeds:
            if seed_id in self._suspended:
                yield Spent(self._suspended[seed_id].queries, ended=False)
            elif seed_id in self._ended:
                yield Spent(self._ended[seed_id].queries, ended=True)

    def _stopped(self) -> bool:
        setting = self._setting
        limit = setting.plan.total_time
        return setting.stopped() or (
            limit is not None and self._seconds_before + setting.stopwatch.wall >= limit
        )

    def _progress(self) -> Progress:
        plan = self._setting.plan
        spent = self._queries - sum(row.queries for row in self._ended.values())
        left = plan.max_queries * (len(self._seeds) - len(self._ended)) - spent
        if plan.total_queries is not None:
            left = min(left, plan.total_queries - self._queries)
        seconds = self._seconds_before + self._setting.stopwatch.wall
        return Progress(
            seeds=len(self._setting.images),
            deviating_seeds=len(self._setting.images) - len(self._seeds),
            ended=len(self._ended),
            findings=sum(row.ended == "finding" for row in self._ended.values()),
            queries=self._queries,
            device_queries=self._device_queries,
            seconds=seconds,
            most_queries_left=left,
            seconds_left=math.inf if plan.total_time is None else plan.total_time - seconds,
        )


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
