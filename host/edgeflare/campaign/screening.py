"""The seeds themselves: evaluated on every arm before any search, since some already deviate."""

from __future__ import annotations

from collections.abc import Mapping

from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.campaign.input_evaluation import evaluate_inputs
from edgeflare.campaign.trigger_files import store_trigger
from edgeflare.core.arm import Arm
from edgeflare.core.evaluated_query import EvaluatedQuery
from edgeflare.core.outcome import Outcome, answers_by_arm
from edgeflare.core.trigger import Trigger
from edgeflare.run.journal_rows import AnswerRow
from edgeflare.run.stored_answers import from_rows

FOLDER = "deviating_seeds"


def screen(context: CampaignContext) -> dict[int, Outcome]:
    """Evaluate the seeds, and record those that deviate.

    Returns:
        The outcome of each seed, by seed id; not of all if the user stopped it.

    """
    known = _known(context)
    missing = [(seed_id, 0) for seed_id in range(len(context.seeds)) if seed_id not in known]
    outcomes = {seed_id: one.outcome for seed_id, one in known.items()}

    def record(seed_id: int, one: EvaluatedQuery) -> None:
        kind = context.plan.goal.met(one.outcome)
        if kind is not None:
            trigger = Trigger(context.seeds.inputs[seed_id], kind, one.outcome, ())
            store_trigger(context, FOLDER, seed_id, trigger)

    for batch in evaluate_inputs(
        context,
        "seed",
        [missing],
        lambda seed_id: context.seeds.inputs[seed_id],
        members=context.panel.members,
        record=record,
    ):
        outcomes |= {seed_id: one.outcome for seed_id, one in batch}
        context.observer.screened(len(outcomes), len(context.seeds))
    return outcomes


def warn(context: CampaignContext) -> None:
    """Note what looks wrong in the answers of the host's models on the seeds, and show it."""
    known = _known(context)
    if not known:
        return
    by_arm = answers_by_arm([one.outcome for one in known.values()])
    lines = context.task.warnings(by_arm.get(Arm.ORIGINAL), by_arm[Arm.TWIN], context.seeds.labels)
    context.journal.note("warnings", lines)
    for line in lines:
        context.observer.warned(line)


def _known(context: CampaignContext) -> Mapping[int, EvaluatedQuery]:
    rows: list[AnswerRow] = [rows[0] for rows in context.journal.answers("seed").values()]
    return {
        row.seed_id: one
        for row, one in zip(rows, from_rows(context.panel.reading, rows), strict=True)
    }
