"""The search itself: a chain for each seed, run in passes that share the budget out.

How the campaign's queries are shared out over its chains. A bound on all queries together must hold
exactly, and yet the results must not depend on which chains happened to run first. So the bound is
given out in passes: every chain may spend an equal allowance; what the chains that ended left over
is shared out equally among the others in the next pass, until a share is less than one query.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from edgeflare.campaign.campaign_context import CampaignContext, store_trigger
from edgeflare.campaign.chain import Chain, chain_generator
from edgeflare.campaign.observer import Progress
from edgeflare.campaign.refinement_phase import note_chosen
from edgeflare.campaign.scheduler import replay_answers, run_chains
from edgeflare.core.query import Outcome
from edgeflare.core.truths import Truths
from edgeflare.run.journal_rows import ChainRow, Ended, Role
from edgeflare.run.run_header import RunHeader
from edgeflare.strategies.operator_pool import domain_operators
from edgeflare.strategies.strategy import AskTellSearch, Donor, Start
from edgeflare.strategies.strategy_registry import find_strategy

FOLDER = "findings"


class SearchPhase:
    """Searches from every seed that does not deviate itself.

    What a chain does depends on its seed, its generator and the answers alone, never on which
    other chains are open; so the number of chains and the timing change no result.
    """

    role: Role = "step"

    def __init__(
        self,
        context: CampaignContext,
        seeds: Mapping[int, Outcome],
        donors: Mapping[int, Outcome],
    ) -> None:
        """Prepare the search.

        Args:
            context: the campaign.
            seeds: the outcomes of the seeds to search from, by id.
            donors: those of all seeds that do not deviate, also of those that others search from.

        """
        context.health.canaries.load_references(context.panel.reading)
        self._context = context
        self._seeds = seeds
        self._registered = find_strategy(context.plan.strategy)
        self._strategy = self._registered.create(context.plan.parameters)
        if context.plan.goal.find not in self._strategy.reads_other_seeds:
            donors = {}
        self._donors = tuple(Donor(context.seeds.input_of(i), donors[i]) for i in sorted(donors))
        pool = domain_operators(context.domain.name, context.plan.operators)
        self._operators = tuple(map(context.domain.bound, pool))
        self._paper_operators = context.domain.paper_operators()
        self._published_operators = context.domain.published_operators()
        self._ended = context.journal.chains()
        self._open: dict[int, Chain] = {}
        self._allowance = 0
        self._seconds_before = context.journal.times().wall
        self._count = len(context.seed_ids)

    def run(self) -> bool:
        """Search until every chain has ended; return False if it was stopped before."""
        context, plan = self._context, self._context.plan
        allowance: int | None = first_allowance(
            len(self._seeds), plan.max_queries, plan.total_queries
        )
        while allowance is not None:
            self._allowance = allowance
            waiting = [seed_id for seed_id in self._seeds if seed_id not in self._ended]
            run_chains(context, self, waiting, context.chains)
            if self.stopped():
                return False
            allowance = next_allowance(
                allowance, self._spent(), plan.max_queries, plan.total_queries
            )
        with context.journal.transaction():
            for chain in list(self._open.values()):
                self._end(chain, "total-queries")
        return True

    def open(self, seed_id: int) -> Chain:
        """Return a chain that waited for this pass, or a new one, told what the journal has."""
        if seed_id in self._open:
            return self._open[seed_id]
        context = self._context
        goal = context.plan.goal
        start = Start(
            context.seeds.input_of(seed_id),
            self._seeds[seed_id],
            goal,
            rng=chain_generator(context.plan.rng_seed, seed_id),
            bounds=context.plan.bounds(context.domain.space),
            ensemble=context.panel.members,
            donors=self._donors,
            operators=self._operators,
            paper_operators=self._paper_operators,
            published_operators=self._published_operators,
            space=context.domain.space,
            host_predicts=not context.device_stages,
        )
        search = AskTellSearch(
            self._registered.begin(self._strategy, start),
            context.white_box,
            context.plan.max_time_seconds,
        )
        chain = Chain(seed_id, search, goal)
        replay_answers(context, self.role, chain)
        self._open[seed_id] = chain
        return chain

    def keep_or_end(self, chain: Chain) -> bool:
        """End a chain, let it wait for the next pass, or let it go on."""
        plan = self._context.plan
        ended = chain.ending(plan.max_queries, plan.max_time_seconds)
        if ended is not None:
            self._end(chain, ended)
            return False
        return chain.affords(self._allowance)

    def stopped(self) -> bool:
        """Return whether the user wants to stop, or the time is up."""
        context = self._context
        limit = context.plan.time_limit_seconds
        return context.stopped() or (
            limit is not None and self._seconds_before + context.stopwatch.wall >= limit
        )

    def add_time(self, device_busy_seconds: float) -> None:
        """Count the time of a batch as searching."""
        self._context.stopwatch.lap("wall", device_busy_seconds)

    def report(self) -> None:
        """Show how far the search is."""
        context, plan = self._context, self._context.plan
        under_way = sum(chain.queries for chain in self._open.values())
        queries = under_way + sum(row.queries for row in self._ended.values())
        left = plan.max_queries * (len(self._seeds) - len(self._ended)) - under_way
        if plan.total_queries is not None:
            left = min(left, plan.total_queries - queries)
        spent: list[ChainRow | Chain] = [*self._ended.values(), *self._open.values()]
        seconds = self._seconds_before + context.stopwatch.wall
        context.observer.searched(
            Progress(
                seeds=self._count,
                deviating_seeds=self._count - len(self._seeds),
                ended=len(self._ended),
                findings=sum(row.ended == "finding" for row in self._ended.values()),
                queries=queries,
                device_queries=sum(chain.device_queries for chain in spent),
                seconds=seconds,
                most_queries_left=left,
                seconds_left=math.inf
                if plan.time_limit_seconds is None
                else plan.time_limit_seconds - seconds,
            )
        )

    @cached_property
    def _truths(self) -> Truths:
        return RunHeader.from_json(self._context.journal.about()).truths

    def _end(self, chain: Chain, ended: Ended) -> None:
        context = self._context
        trigger = chain.trigger
        if trigger is not None:
            store_trigger(context, FOLDER, chain.seed_id, trigger)
            if context.plan.refine == "shown":
                note_chosen(context, self._truths[chain.seed_id], chain.seed_id, trigger)
        row = chain.row(ended)
        context.journal.end_chain(row)
        self._ended[chain.seed_id] = row
        del self._open[chain.seed_id]

    def _spent(self) -> Iterable[Spent]:
        for seed_id in self._seeds:
            if seed_id in self._open:
                yield Spent(self._open[seed_id].queries, ended=False)
            elif seed_id in self._ended:
                yield Spent(self._ended[seed_id].queries, ended=True)


@dataclass(frozen=True, slots=True)
class Spent:
    """What a chain has spent, and whether it has ended."""

    queries: int
    ended: bool


def first_allowance(chains: int, max_queries: int, total_queries: int | None) -> int:
    """Return the queries that each chain may spend in the first pass."""
    if total_queries is None or chains == 0:
        return max_queries
    return min(max_queries, total_queries // chains)


def next_allowance(
    allowance: int, spent: Iterable[Spent], max_queries: int, total_queries: int | None
) -> int | None:
    """Return what each unended chain may have spent by the end of the next pass.

    Args:
        allowance: what each chain could spend by the end of the pass that is over.
        spent: spending of every chain. Chains that were already ended in a later pass (in a run
            that is resumed) count as unended here if they spent more than the allowance.
        max_queries: bound for one chain.
        total_queries: bound for all chains together.

    Returns:
        The allowance of the next pass, or None if there is none.

    """
    if total_queries is None or allowance >= max_queries:
        return None
    used = 0
    waiting = 0
    for chain in spent:
        if chain.ended and chain.queries <= allowance:
            used += chain.queries
        else:
            waiting += 1
    if waiting == 0:
        return None
    # Of what the ended ones left, not of what is unspent: a chain that asks several queries at once
    # may still have some of its allowance, which must not be given out twice.
    following = min(max_queries, (total_queries - used) // waiting)
    return following if following > allowance else None
