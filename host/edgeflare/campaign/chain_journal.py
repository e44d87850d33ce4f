"""The chains of a campaign, whose answers are kept in its journal."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Protocol

from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.campaign.chain import Chain
from edgeflare.campaign.pipeline import Pipeline
from edgeflare.campaign.scheduler import ChainAnswer, ChainPhase, ChainRecord, Lane, run_chains
from edgeflare.core.query import EvaluatedQuery, Query
from edgeflare.errors import UserError
from edgeflare.run.answer_rows import from_rows, input_crc32, to_row
from edgeflare.run.journal_rows import Role
from edgeflare.run.seed_ids import device_of


class JournaledPhase(ChainPhase, Protocol):
    """A phase of a campaign that consists of chains, one for each of some seeds."""

    @property
    def role(self) -> Role:
        """The role that the journal keeps the chains' answers under."""


def run_journaled_chains(
    context: CampaignContext, phase: JournaledPhase, seed_ids: Iterable[int], most_open: int
) -> None:
    """Run a phase's chains, and keep their answers; see `run_chains`.

    Args:
        context: the campaign.
        phase: what the chains are, and what becomes of them.
        seed_ids: the seeds of the chains, in the order in which they are opened.
        most_open: the most chains that are open at once.

    """
    run_chains(
        phase,
        _JournalRecord(context, phase.role),
        _lanes(context, seed_ids),
        most_open=most_open,
        batch_size=context.batch_size,
    )


def _lanes(context: CampaignContext, seed_ids: Iterable[int]) -> list[Lane]:
    """Return a lane for each device, with the seeds that the device is given."""
    devices = context.panel.devices
    lanes = [
        Lane(
            Pipeline(context.panel, context.recover),
            deque(),
            partial(context.health.thermometer.is_cool, index),
        )
        for index in range(devices)
    ]
    for seed_id in seed_ids:
        lanes[device_of(seed_id, devices)].waiting.append(seed_id)
    return lanes


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


class _JournalRecord(ChainRecord):
    """Keeps the answers of chains in the journal, and asks the canaries that are due."""

    def __init__(self, context: CampaignContext, role: Role) -> None:
        self._context = context
        self._role = role
        self._reading = context.panel.reading

    def transaction(self) -> AbstractContextManager[None]:
        return self._context.journal.transaction()

    def further_queries(
        self, queries: Sequence[Query], seed_ids: Sequence[int]
    ) -> tuple[list[Query], list[int]]:
        return self._context.health.canaries.due(queries, seed_ids)

    def write(self, answers: Sequence[ChainAnswer], further: Sequence[EvaluatedQuery]) -> None:
        self._context.journal.write_batch(
            [
                to_row(self._reading, self._role, chain.seed_id, step, query.input, evaluated)
                for chain, step, query, evaluated in answers
            ]
        )
        self._context.health.canaries.record(answers[0].chain.seed_id, further)

    def check(self) -> None:
        self._context.health.canaries.check(self._context.ask_device)
