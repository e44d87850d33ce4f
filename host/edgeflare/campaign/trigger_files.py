"""The files of a triggering input and of its seed, and the distance between the two."""

from __future__ import annotations

from dataclasses import asdict

from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.core.goal import Trigger
from edgeflare.run.journal_rows import TriggerRow

SEEDS_FOLDER = "seeds"


def store_trigger(context: CampaignContext, folder: str, seed_id: int, trigger: Trigger) -> None:
    """Store a triggering input in a folder of the run directory, and note it in the journal."""
    seed = context.seeds.input_of(seed_id)
    stored = context.directory.store_input(folder, seed_id, trigger.input, context.domain)
    stored_seed = context.directory.store_input(SEEDS_FOLDER, seed_id, seed, context.domain)
    if context.seeds.fixed:
        place = context.seeds.place(seed_id)
        fixed = {name: rows[place] for name, rows in context.seeds.fixed.items()}
        context.directory.store_fixed(seed_id, fixed)
    context.journal.write_trigger(
        TriggerRow(
            seed_id,
            trigger.kind,
            trigger.operators,
            stored.path,
            stored.sha256,
            stored_seed.path,
            **asdict(context.domain.distances(trigger.input, seed)),
            nearness_db=context.domain.nearness_db(trigger.input, seed),
        )
    )
