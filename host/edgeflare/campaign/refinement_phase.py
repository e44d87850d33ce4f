"""Findings made stronger and nearer, once the search is over; none of it counts as searching.

`--min-strength` and `--within` judge findings afterwards, and the search sees neither. A search
that went on past weak findings measured its own effort: on 40 seeds, 500 queries found 2 of
strength .3 or more, where 300 queries of strengthening showed that 9 of 20 reach it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from edgeflare.campaign.campaign_context import CampaignContext, store_trigger
from edgeflare.campaign.chain import Chain
from edgeflare.campaign.observer import RefinementProgress
from edgeflare.campaign.scheduler import replay_answers, run_chains
from edgeflare.core.answer import FAILURES, Answer
from edgeflare.core.goal import Trigger
from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm, Outcome, Query
from edgeflare.run.harm import harm_of, rank_of_harm
from edgeflare.run.journal_rows import RefinementRow, Role, TriggerRow
from edgeflare.run.nearness import is_near
from edgeflare.run.plan import SHOWN, Plan
from edgeflare.strategies.gradient_shrink import shrink_by_gradient
from edgeflare.strategies.shrink import shrink
from edgeflare.strategies.strategy import AskTellSearch, SearchGenerator, Start
from edgeflare.strategies.strengthen import strengthen

FOLDER = "refined"

CHOSEN_KEY = "refined_findings"
"""The key of `about` under which the journal keeps which findings are refined, if not all are: the
rank of the harm, the strength below 0 and the seed of each."""

OPEN = 64
"""Findings that are refined at once: each asks about four inputs at a time or more, and remembers
up to six megabytes of what it was told, where there are 1,000 classes."""

KEPT_STRENGTH = 0.75
"""Share of the strength that strengthening reached which shrinking has to keep, where no least
strength was asked for."""


def refine(context: CampaignContext, seeds: Mapping[int, Outcome]) -> bool:
    """Refine the findings as the plan says; return False if the user stopped it before its end.

    Each finding has a number of queries of its own, and no time limit cuts in: what becomes of a
    finding depends on itself and the run seed alone.

    Args:
        context: the campaign.
        seeds: outcomes of the seeds that were searched from, by id.

    """
    if not context.plan.most_refinement_queries:
        return True
    phase = RefinementPhase(context, seeds)
    run_chains(context, phase, phase.left, min(OPEN, context.chains))
    return not phase.left


class _Spent(NamedTuple):
    """What a refinement has spent so far."""

    queries: int = 0
    device_queries: int = 0
    seconds: float = 0.0

    @classmethod
    def by(cls, chain: Chain) -> _Spent:
        return cls(chain.queries, chain.device_queries, chain.seconds)


_NOTHING = _Spent()


@dataclass(slots=True)
class _Refinement:
    """A finding being refined.

    Attributes:
        found: the finding.
        chain: asks; None until it is open.
        strength: strength before; None until the finding showed again.
        shown: what was spent until then, or until it did not show again.
        strengthened: what was spent until strengthening ended, if that was asked for.

    """

    found: TriggerRow
    chain: Chain | None = None
    strength: float | None = None
    shown: _Spent = _NOTHING
    strengthened: _Spent = _NOTHING

    def spent(self) -> _Spent:
        """Return what the refinement has spent so far, including what its journal had recorded."""
        return _NOTHING if self.chain is None else _Spent.by(self.chain)


class RefinementPhase:
    """Refines each deviation that was searched for and found."""

    role: Role = "refine"

    def __init__(self, context: CampaignContext, seeds: Mapping[int, Outcome]) -> None:
        """Prepare the refinement; `seeds` are the outcomes of the seeds that were searched from."""
        self._context = context
        self._seeds = seeds
        done = context.journal.refinements()
        self._ended_queries = sum(row.queries for row in done.values())
        self._ended = len(done)
        chosen = _chosen(context, seeds)
        self._under_way = {
            row.seed_id: _Refinement(row)
            for row in context.journal.triggers().values()
            if row.seed_id in chosen and row.seed_id not in done
        }

    @property
    def left(self) -> list[int]:
        """The seeds of the findings that are not refined yet."""
        return list(self._under_way)

    def open(self, seed_id: int) -> Chain:
        """Return the refinement of a finding, told what the journal has of it."""
        context = self._context
        plan = context.plan
        start = Start(
            context.seeds.input_of(seed_id),
            self._seeds[seed_id],
            plan.goal,
            rng=np.random.default_rng([plan.rng_seed, seed_id, 1]),
            bounds=plan.bounds(context.domain.space),
            ensemble=context.panel.members,
            space=context.domain.space,
        )
        refinement = self._under_way[seed_id]
        asking = AskTellSearch(self._generate(refinement, start), context.white_box)
        chain = Chain(seed_id, asking, plan.goal)
        refinement.chain = chain
        replay_answers(context, self.role, chain)
        return chain

    def keep_or_end(self, chain: Chain) -> bool:
        """Let a refinement go on, or store what became of the finding."""
        if chain.strategy.ask():
            return True
        self._end(chain)
        return False

    def stopped(self) -> bool:
        """Return whether the user wants to stop."""
        return self._context.stopped()

    def add_time(self, _device_busy_seconds: float) -> None:
        """Count the time of a batch as refining."""
        self._context.stopwatch.lap("refine")

    def report(self) -> None:
        """Show how many findings are refined, and what that took."""
        self._context.observer.refined(
            RefinementProgress(
                findings=self._ended + len(self._under_way),
                ended=self._ended,
                ended_queries=self._ended_queries,
                open_queries=sum(chain.spent().queries for chain in self._under_way.values()),
                most_queries=self._context.plan.most_refinement_queries,
            )
        )

    def _generate(self, refinement: _Refinement, start: Start) -> SearchGenerator:
        """Strengthen first, then shrink; nothing is refined that does not show again."""
        context, found, goal = self._context, refinement.found, start.goal
        stored = context.directory.load_input(found.image)
        (outcome,) = yield (Query(stored, context.panel.arms, context.panel.members),)
        refinement.shown = refinement.strengthened = refinement.spent()
        if goal.met(outcome) != found.kind:
            return None
        plan = context.plan
        trigger = Trigger(stored, found.kind, outcome, found.operators)
        refinement.strength = _strength(start, trigger)
        if plan.strengthen:
            trigger = yield from strengthen(
                trigger, start, plan.strengthen, enough=plan.min_strength or None
            )
            refinement.strengthened = refinement.spent()
        if plan.shrink:
            kept = _strength_to_keep(plan, refinement.strength, _strength(start, trigger))
            goal = replace(goal, min_strength=max(goal.min_strength, kept))
            rng = np.random.default_rng([plan.rng_seed, found.seed_id, 2])
            aimed = replace(start, goal=goal, rng=rng)
            shrunk = shrink_by_gradient if plan.shrink_by == "gradient" else shrink
            trigger = yield from shrunk(trigger, aimed, plan.shrink, self._near_enough(start.seed))
        return trigger

    def _near_enough(self, seed: Input) -> Callable[[Input], bool] | None:
        """Return what tells that an input is as near as the gate asks; None if all is spent."""
        plan, domain = self._context.plan, self._context.domain
        if plan.refine != "gate":
            return None
        return lambda input_: bool(is_near(plan, domain.nearness_db(input_, seed)))

    def _end(self, chain: Chain) -> None:
        """Store what became of a finding in a file of its own: a kill leaves the one or the other.

        The file is written before the transaction ends that makes it the finding's.
        """
        refinement = self._under_way.pop(chain.seed_id)
        self._ended += 1
        self._ended_queries += chain.queries
        found, shown, after = refinement.found, refinement.shown, refinement.strengthened
        if chain.trigger is not None:
            store_trigger(self._context, FOLDER, found.seed_id, chain.trigger)
        self._context.journal.end_refinement(
            RefinementRow(
                seed_id=found.seed_id,
                queries=chain.queries,
                device_queries=chain.device_queries,
                original_evaluations=chain.evaluations[Arm.ORIGINAL],
                twin_evaluations=chain.evaluations[Arm.TWIN],
                member_evaluations=chain.member_evaluations,
                strength=refinement.strength,
                image=found.image,
                l2=found.l2,
                linf=found.linf,
                mean_abs=found.mean_abs,
                changed=found.changed,
                host_gradients=chain.strategy.host_gradients,
                translated_evaluations=chain.strategy.translated_evaluations,
                seconds=chain.seconds - shown.seconds,
                strengthen_queries=after.queries - shown.queries,
                strengthen_device_queries=after.device_queries - shown.device_queries,
                strengthen_seconds=after.seconds - shown.seconds,
            )
        )


def note_chosen(
    context: CampaignContext, truth: Answer | None, seed_id: int, trigger: Trigger
) -> None:
    """Note a finding in the journal as one that is refined, if reports show it first so far.

    Answers of searches that have ended are not kept, so this is told while the search goes on.

    Args:
        context: the campaign.
        truth: what is right for the seed; None where that is not known.
        seed_id: the seed of the finding.
        trigger: the finding.

    """
    if trigger.kind in FAILURES:
        return
    harm = harm_of(context.plan.goal, trigger.outcome, truth)
    strength = context.plan.goal.strength(trigger.outcome) or 0.0
    first = context.journal.about().get(CHOSEN_KEY, [])
    first = sorted([*first, [rank_of_harm(harm), -strength, seed_id]])[:SHOWN]
    context.journal.note(CHOSEN_KEY, first)


def _chosen(context: CampaignContext, seeds: Container[int]) -> Sequence[int]:
    """Return the seeds of the findings that are refined: all, or those that reports show first."""
    if context.plan.refine == "shown":
        return [seed_id for *_, seed_id in context.journal.about().get(CHOSEN_KEY, [])]
    rows = context.journal.triggers().values()
    return [row.seed_id for row in rows if row.seed_id in seeds and row.kind not in FAILURES]


def _strength_to_keep(plan: Plan, before: float, reached: float) -> float:
    """Return the strength below which shrinking must not fall.

    It is the least that was asked for, where that is reached, and what the finding had elsewhere.
    """
    if plan.min_strength:
        return plan.min_strength if reached >= plan.min_strength else reached
    return max(before, KEPT_STRENGTH * reached) if plan.strengthen else 0.0


def _strength(start: Start, trigger: Trigger) -> float:
    return start.goal.strength(trigger.outcome) or 0.0
