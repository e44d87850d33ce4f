"""A campaign, from its seeds to its verified findings; and its triggers evaluated again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.campaign.input_evaluation import (
    evaluate_held_out,
    evaluate_inputs,
    screen,
    verify,
)
from edgeflare.campaign.refinement_phase import refine
from edgeflare.campaign.search_phase import SearchPhase
from edgeflare.core.input_space import Input
from edgeflare.core.interrupt import Interrupt, InterruptedBy
from edgeflare.core.query import Outcome
from edgeflare.linear_algebra import one_thread

StoppedBy = InterruptedBy | Literal["time-limit", "infrastructure", "screening"]


def run_campaign(context: CampaignContext, interrupt: Interrupt) -> StoppedBy | None:
    """Run a campaign to its end, or go on with one that was stopped.

    Whatever happens, the journal holds all that was answered.

    Returns:
        What stopped it before its end, or None.

    """
    with one_thread():
        return _run(context, interrupt)


def run_screening(context: CampaignContext, interrupt: Interrupt) -> StoppedBy:
    """Evaluate the seeds of a campaign, and verify those that deviate; nothing is searched.

    Returns:
        What stopped it before its end, which is at most that only the seeds were asked for.

    """
    with one_thread():
        context.health.thermometer.read_all()
        outcomes = screen(context)
        context.stopwatch.lap("setup")
        screened = len(outcomes) == len(context.seed_ids)
        verified = verify(replace(context, stopped=interrupt.urgent))
        context.health.thermometer.read_all()
    return "screening" if screened and verified else interrupt.by


def _run(context: CampaignContext, interrupt: Interrupt) -> StoppedBy | None:
    context.health.thermometer.read_all()
    outcomes = screen(context)
    tested = evaluate_held_out(context)
    context.stopwatch.lap("setup")
    ended = False
    if tested and len(outcomes) == len(context.seed_ids):
        deviating = context.journal.triggers().keys() - context.journal.chains().keys()
        seeds = {i: outcome for i, outcome in outcomes.items() if i not in deviating}
        searched = SearchPhase(context, seeds, _donors(context, outcomes)).run()
        # What was found is refined where time ended the search, too.
        refined = not context.stopped() and refine(context, seeds)
        ended = searched and refined
    verified = verify(replace(context, stopped=interrupt.urgent))
    context.health.thermometer.read_all()
    if ended and verified:
        return None
    return interrupt.by if interrupt.asked() else "time-limit"


def _donors(context: CampaignContext, outcomes: Mapping[int, Outcome]) -> Mapping[int, Outcome]:
    """Return the outcomes of all seeds that do not deviate, by id, as far as they are known."""
    if context.screening is None:
        known: Mapping[int, Outcome] = outcomes
    else:
        known = context.screening.outcomes
    goal = context.plan.goal.unmutated
    return {seed_id: outcome for seed_id, outcome in known.items() if goal.met(outcome) is None}


def evaluate_again(context: CampaignContext, interrupt: Interrupt) -> StoppedBy | None:
    """Evaluate the seeds of the journal's triggers once, and the triggers as verification does.

    Returns:
        What stopped it before its end, or None.

    """
    complete = _evaluate_seeds(context) and verify(context)
    return None if complete and not interrupt.urgent() else interrupt.by


def _evaluate_seeds(context: CampaignContext) -> bool:
    known = context.journal.answers("seed")
    paths = {row.seed_id: row.seed_image for row in context.journal.triggers().values()}
    left = [(seed_id, 0) for seed_id in paths if seed_id not in known]
    done = len(paths) - len(left)

    def load(seed_id: int) -> Input:
        return context.directory.load_input(paths[seed_id])

    for batch in evaluate_inputs(context, "seed", [left], load):
        done += len(batch)
        context.observer.screened(done, len(paths))
    context.stopwatch.lap("setup")
    return done == len(paths)
