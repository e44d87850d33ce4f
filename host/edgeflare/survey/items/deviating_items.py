"""The deviating items that a survey stores, as findings of its run."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.campaign_context import CampaignContext, store_trigger
from edgeflare.campaign.screening import FOLDER as UNCHANGED_FOLDER
from edgeflare.campaign.search_phase import FOLDER as CHANGED_FOLDER
from edgeflare.core.goal import Trigger
from edgeflare.core.query import Outcome
from edgeflare.run.journal_rows import ChainRow
from edgeflare.run.survey_rows import DeviceRow
from edgeflare.survey.items.survey_facts import UNCHANGED
from edgeflare.survey.items.surveyed_items import SurveyedItems


def choose_findings(
    rows: Sequence[DeviceRow], inputs: int, cell_rates: NDArray[np.float64], most: int
) -> list[DeviceRow]:
    """Return the deviating items to store, at most one of each input.

    First comes the strongest of each cell, from the cell with the highest rate on, then the
    strongest of all; a failure is stronger than any deviation. Of equals the first item wins.

    Args:
        rows: what the device said.
        inputs: how many there are.
        cell_rates: (cells,), the estimated rate of deviations in each.
        most: of them.

    """
    strongest = sorted(
        (row for row in rows if row.kind is not None),
        key=lambda row: (-(inf if row.strength is None else row.strength), row.item),
    )
    chosen: dict[int, DeviceRow] = {}
    for cell in np.argsort(-cell_rates, kind="stable").tolist():
        here = (
            row
            for row in strongest
            if row.item // inputs == cell and row.item % inputs not in chosen
        )
        for row in list(here)[:1]:
            chosen[row.item % inputs] = row
    for row in strongest:
        chosen.setdefault(row.item % inputs, row)
    return list(chosen.values())[:most]


def store_findings(
    context: CampaignContext, items: SurveyedItems, rows: Sequence[DeviceRow]
) -> None:
    """Store deviating items as a search stores what it found; inside a transaction.

    The input unchanged is the seed, the item's input what was found from it. A finding needs a
    chain that led to it: one that spent nothing stands for it, as in a replay. An input that
    deviates unchanged is a deviating seed.
    """
    for row in rows:
        cell, seed_id = items.cell_of(row.item), items.input_of(row.item)
        unchanged = cell.condition == UNCHANGED
        operators = () if unchanged else (f"{cell.condition}:{cell.severity}",)
        folder = UNCHANGED_FOLDER if unchanged else CHANGED_FOLDER
        # Its answers are those of its verification; those of the survey were not kept.
        trigger = Trigger(items.make(row.item), str(row.kind), Outcome({}), operators)
        store_trigger(context, folder, seed_id, trigger)
        if not unchanged:
            context.journal.end_chain(ChainRow.nothing_spent(seed_id))
