"""Findings made stronger and smaller, once the search is over; none of it counts as searching."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from edgeflare.campaign.chain import Chain
from edgeflare.campaign.pipeline import Pipeline
from edgeflare.campaign.rows import RefinementRow, TriggerRow
from edgeflare.campaign.setting import Setting
from edgeflare.campaign.triggers import store_trigger
from edgeflare.search.goal import Goal, strength
from edgeflare.search.outcome import Arm, Image, Outcome
from edgeflare.search.refining.witnesses import compared
from edgeflare.search.shrink import shrink
from edgeflare.search.strategy import Query, Start, Story, Told, Trigger
from edgeflare.search.strengthen import strengthen

FOLDER = "refined"

OPEN = 64
"""Findings that are refined at once: each asks about four inputs at a time or more, and remembers
up to six megabytes of what it was told, where there are 1,000 classes."""

KEPT_STRENGTH = 0.75
"""Share of the strength that strengthening reached which shrinking has to keep."""

_Batch = list[tuple["_Refinement", Sequence[Query]]]


@dataclass(slots=True)
class _Refinement:
    """A finding being refined.

    Attributes:
        found: the finding as the search left it.
        chain: what is asked, and what that has cost.
        outcome: what all arms say about it, once they were asked.

    """

    found: TriggerRow
    chain: Chain
    outcome: Outcome | None = None


def refine(setting: Setting, seeds: Mapping[int, Outcome]) -> bool:
    """Refine the findings as the plan says; return False if that was stopped before its end.

    What becomes of a finding depends on itself and the run seed alone. A finding whose refinement
    was cut off is refined anew.

    Args:
        setting: the campaign.
        seeds: outcomes of the seeds that were searched from, by id.

    """
    if not setting.plan.strengthen and not setting.plan.shrink:
        return True
    refined = setting.journal.refinements()
    triggers = [row for row in setting.journal.triggers().values() if row.seed_id in seeds]
    waiting = deque(
        row for row in triggers if row.seed_id not in refined and row.kind == "deviation"
    )
    done, total = 0, len(waiting)
    ready: deque[_Refinement] = deque()
    pipeline: Pipeline[_Batch] = setting.pipeline()
    size = setting.batch_size(0.0)
    under_way = 0
    while done < total:
        while waiting and under_way < min(OPEN, setting.chains):
            row = waiting.popleft()
            ready.append(_begin(setting, row, seeds[row.seed_id]))
            under_way += 1
        while ready and not pipeline.full and not setting.stopped():
            _put(setting, _next_batch(ready, size), pipeline)
        if not len(pipeline):
            return False
        landed = pipeline.take()
        begin = 0
        for refinement, queries in landed.ticket:
            evaluated = landed.evaluated[begin : begin + len(queries)]
            begin += len(queries)
            refinement.outcome = refinement.outcome or evaluated[0].outcome
            refinement.chain.tell(evaluated)
            if refinement.chain.strategy.ask():
                ready.append(refinement)
            else:
                _end(setting, refinement)
                done, under_way = done + 1, under_way - 1
        with setting.journal.transaction():
            setting.health.canaries.write(landed.evaluated[begin:])
            setting.stopwatch.lap("refine")
        setting.health.canaries.judge(setting.ask_device)
        size = setting.batch_size(landed.mean_seconds)
        setting.observer.refined(done, total)
    return True


def _begin(setting: Setting, found: TriggerRow, seed: Outcome) -> _Refinement:
    plan = setting.plan
    start = Start(
        setting.images[found.seed_id],
        seed,
        plan.goal,
        np.random.default_rng([plan.rng_seed, found.seed_id, 1]),
        plan.bounds,
        setting.panel.members,
    )
    image = setting.directory.load_image(found.image)
    story = _story(setting, found, image, start)
    return _Refinement(found, Chain(found.seed_id, Told(story), plan.goal))


def _story(setting: Setting, found: TriggerRow, image: Image, start: Start) -> Story:
    """Strengthen first, then shrink; nothing is refined that does not show again."""
    plan, goal = setting.plan, start.goal
    (outcome,) = yield (Query(image, setting.panel.arms, setting.panel.members),)
    kind = goal.met(outcome)
    if kind != found.kind:
        return None
    trigger = Trigger(image, kind, outcome, found.operators)
    if plan.strengthen:
        before = _strength(goal, trigger)
        trigger = yield from strengthen(trigger, start, plan.strengthen)
        kept = max(before, KEPT_STRENGTH * _strength(goal, trigger))
        goal = replace(goal, min_strength=max(goal.min_strength, kept))
    if plan.shrink:
        rng = np.random.default_rng([plan.rng_seed, found.seed_id, 2])
        trigger = yield from shrink(trigger, replace(start, goal=goal, rng=rng), plan.shrink)
    return trigger


def _strength(goal: Goal, trigger: Trigger) -> float:
    return strength(*compared(goal, trigger.outcome)) or 0.0


def _next_batch(ready: deque[_Refinement], size: int) -> _Batch:
    """Take refinements until their queries fill a batch."""
    batch: _Batch = []
    queries = 0
    while ready and queries < size:
        refinement = ready.popleft()
        asked = refinement.chain.strategy.ask()
        batch.append((refinement, asked))
        queries += len(asked)
    return batch


def _put(setting: Setting, batch: _Batch, pipeline: Pipeline[_Batch]) -> None:
    """Begin to evaluate what refinements ask, and the canaries that are due."""
    queries = [query for _, asked in batch for query in asked]
    seed_ids = [refinement.found.seed_id for refinement, asked in batch for _ in asked]
    canaries, canary_ids = setting.health.canaries.due(queries, seed_ids)
    pipeline.put(batch, [*queries, *canaries], [*seed_ids, *canary_ids])


def _end(setting: Setting, refinement: _Refinement) -> None:
    """Store what became of a finding in a file of its own: a kill leaves the one or the other."""
    found, chain, goal = refinement.found, refinement.chain, setting.plan.goal
    before = refinement.outcome if chain.trigger is not None else None  # None: it did not show
    with setting.journal.transaction():
        if chain.trigger is not None:
            store_trigger(setting, FOLDER, found.seed_id, chain.trigger)
        setting.journal.end_refinement(
            RefinementRow(
                found.seed_id,
                chain.queries,
                chain.device_queries,
                chain.evaluations[Arm.ORIGINAL],
                chain.evaluations[Arm.TWIN],
                chain.member_evaluations,
                strength(*compared(goal, before)) if before is not None else None,
                found.image,
                found.l2,
                found.linf,
                found.mean_abs,
                found.changed,
            )
        )
