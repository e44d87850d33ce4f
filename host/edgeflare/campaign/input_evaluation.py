"""Known inputs evaluated on every arm, batch after batch, with the answers in the journal.

Findings are among them, several times each, which verifies that they show again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.campaign.pipeline import Pipeline
from edgeflare.core.input_space import Input
from edgeflare.core.query import EvaluatedQuery, Query
from edgeflare.run.answer_rows import to_row
from edgeflare.run.journal_rows import REPETITIONS, Role

_Inputs = list[tuple[int, int, Input]]
"""Seed ids, repetitions and inputs of a batch."""


def evaluate_inputs(
    context: CampaignContext,
    role: Role,
    rounds: Iterable[Sequence[tuple[int, int]]],
    load: Callable[[int], Input],
    *,
    largest_batch: int = 16,
    members: tuple[str, ...] = (),
    record: Callable[[int, EvaluatedQuery], None] = lambda _seed_id, _evaluated: None,
    end_batch: Callable[[], None] = lambda: None,
) -> Iterator[list[tuple[int, EvaluatedQuery]]]:
    """Evaluate inputs until all are, or the campaign is stopped; yield each batch once it is kept.

    Args:
        context: the campaign.
        role: the role under which the journal keeps the answers.
        rounds: seed id and repetition of each input; no batch holds inputs of two rounds.
        load: returns the input of a seed id.
        largest_batch: the most inputs in a batch; few, where the speed of the device is unknown.
        members: further members of the twin's ensemble to ask.
        record: writes more about an input, given its seed id, in the transaction of its answers.
        end_batch: writes more about a batch, at the end of that transaction.

    """
    size = min(context.batch_size(0.0), largest_batch)
    arms, reading = context.panel.arms, context.panel.reading

    def batches() -> Iterator[tuple[_Inputs, list[Query], list[int]]]:
        for part in (left[at : at + size] for left in rounds for at in range(0, len(left), size)):
            if context.stopped():
                return
            inputs = [(seed_id, n, load(seed_id)) for seed_id, n in part]
            queries = [Query(input_, arms, members) for _, _, input_ in inputs]
            yield inputs, queries, [seed_id for seed_id, _ in part]

    pipeline: Pipeline[_Inputs] = context.pipeline()
    for batch in pipeline.stream(batches()):
        answered = list(zip(batch.ticket, batch.evaluated, strict=True))
        with context.journal.transaction():
            context.journal.write_answers(
                to_row(reading, role, seed_id, n, asked, query)
                for (seed_id, n, asked), query in answered
            )
            for (seed_id, _, _), query in answered:
                record(seed_id, query)
            end_batch()
        yield [(seed_id, query) for (seed_id, _, _), query in answered]


def verify(context: CampaignContext) -> bool:
    """Verify what has not been verified yet; return False if it was stopped before the end."""
    done = {seed_id: len(rows) for seed_id, rows in context.journal.answers("verify").items()}
    paths = {seed_id: row.image for seed_id, row in context.journal.triggers().items()}
    rounds = [
        [(seed_id, n) for seed_id in paths if n >= done.get(seed_id, 0)] for n in range(REPETITIONS)
    ]
    left = sum(map(len, rounds))
    verified = 0

    def load(seed_id: int) -> Input:
        return context.directory.load_input(paths[seed_id])

    def add_time() -> None:
        context.stopwatch.lap("verify")

    for batch in evaluate_inputs(context, "verify", rounds, load, end_batch=add_time):
        verified += len(batch)
        context.observer.verified(verified, left)
    return verified == left
