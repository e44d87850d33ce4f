"""The seeds themselves: evaluated on every arm before any search, since some already deviate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edgeflare.campaign.campaign_context import CampaignContext, store_trigger
from edgeflare.campaign.input_evaluation import evaluate_inputs
from edgeflare.campaign.non_finite_outputs import non_finite_lines, non_finite_rows
from edgeflare.campaign.screening_answers import GivenScreening
from edgeflare.core.goal import Trigger
from edgeflare.core.query import EvaluatedQuery, Outcome
from edgeflare.run.answer_rows import from_rows
from edgeflare.run.journal_rows import AnswerRow
from edgeflare.run.run_document import to_json
from edgeflare.run.run_warnings import WARNINGS_KEY, seed_warnings
from edgeflare.run.without_reset import WITHOUT_RESET_KEY

FOLDER = "deviating_seeds"


def screen(context: CampaignContext) -> dict[int, Outcome]:
    """Evaluate the seeds that are searched, and record those that deviate.

    Where a screening is given, its answers are taken, and nothing is asked.

    Returns:
        The outcome of each seed, by seed id; not of all if the user stopped it.

    """
    if WITHOUT_RESET_KEY not in context.journal.about():
        found = context.without_reset()
        context.journal.note(WITHOUT_RESET_KEY, None if found is None else to_json(found))
    known = _known(context)
    missing = [seed_id for seed_id in context.seed_ids if seed_id not in known]
    outcomes = {seed_id: query.outcome for seed_id, query in known.items()}
    if context.screening is not None:
        return outcomes | _take(context, context.screening, missing)
    for batch in evaluate_inputs(
        context,
        "seed",
        [[(seed_id, 0) for seed_id in missing]],
        context.seeds.input_of,
        members=context.panel.members,
        record=lambda seed_id, query: _record(context, seed_id, query.outcome),
    ):
        outcomes |= {seed_id: query.outcome for seed_id, query in batch}
        context.observer.screened(len(outcomes), len(context.seed_ids))
    return outcomes


def _take(
    context: CampaignContext, given: GivenScreening, seed_ids: Sequence[int]
) -> dict[int, Outcome]:
    """Record what a screening elsewhere has of some seeds, and return their outcomes."""
    outcomes = {seed_id: given.outcomes[seed_id] for seed_id in seed_ids}
    with context.journal.transaction():
        context.journal.write_answers(given.rows[seed_id] for seed_id in seed_ids)
        for seed_id, outcome in outcomes.items():
            _record(context, seed_id, outcome)
    return outcomes


def _record(context: CampaignContext, seed_id: int, outcome: Outcome) -> None:
    """Store a seed if it deviates."""
    kind = context.plan.goal.unmutated.met(outcome)
    if kind is not None:
        trigger = Trigger(context.seeds.input_of(seed_id), kind, outcome, ())
        store_trigger(context, FOLDER, seed_id, trigger)


def warn(context: CampaignContext) -> None:
    """Note what looks wrong in the answers of the host's models on the seeds, and show it."""
    evaluated = _known(context)
    known = {seed_id: query.outcome for seed_id, query in evaluated.items()}
    if context.screening is not None:
        known = dict(context.screening.outcomes)
    if not known:
        return
    lines = [
        *non_finite_lines(
            non_finite_rows(context.panel.reading, list(evaluated.values())),
            context.panel.arms,
            f"{len(evaluated)} seeds",
        ),
        *seed_warnings(context.task, [*known.values()], context.seeds.labels_of(known)),
    ]
    context.journal.note(WARNINGS_KEY, lines)
    for line in lines:
        context.observer.warned(line)


def _known(context: CampaignContext) -> Mapping[int, EvaluatedQuery]:
    rows: list[AnswerRow] = [rows[0] for rows in context.journal.answers("seed").values()]
    return {
        row.seed_id: query
        for row, query in zip(rows, from_rows(context.panel.reading, rows), strict=True)
    }
