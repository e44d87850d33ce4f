"""The host's part of a survey: original and twin answer every item, the device none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.campaign.non_finite_outputs import non_finite_lines, non_finite_rows
from edgeflare.campaign.pipeline import EvaluatedBatch, Pipeline
from edgeflare.core.query import Arm, EvaluatedQuery, Query, answers_by_arm
from edgeflare.pages.facts import count_of
from edgeflare.run.answer_rows import input_crc32
from edgeflare.survey.items.survey_items import FIRST_BATCH, ItemJudgement, SurveyedItems
from edgeflare.survey.phases.survey_observer import SurveyObserver
from edgeflare.survey.record.survey_journal import DISTANCE_KEY

_MOST_WARNED_OF = 500
"""Inputs, the first ones, whose answers are looked at for what seems wrong with the pair."""

_Ticket = list[tuple[int, int]]
"""Items of a batch, each with the checksum of its input."""


def judge_on_host(
    context: CampaignContext,
    items: SurveyedItems,
    judgement: ItemJudgement,
    observer: SurveyObserver,
) -> bool:
    """Have the host's arms answer all items that they did not answer yet.

    A batch of items is made while those before it are evaluated by the models' own processes.

    Returns:
        Whether all items are answered now; not if the user stopped it.

    """
    known = context.journal.survey.host_items()
    missing = [item for item in range(len(items)) if item not in known]
    done = len(known)
    for batch in _evaluated(context, items, missing, context.panel.members):
        rows = [
            judgement.of_host(item, crc32, query)
            for (item, crc32), query in zip(batch.ticket, batch.evaluated, strict=True)
        ]
        with context.journal.transaction():
            context.journal.survey.write_host(rows)
            answer = batch.evaluated[0].outcome[Arm.TWIN]
            if done == 0 and not answer.counted:
                context.journal.note(DISTANCE_KEY, answer.measured_as)
            context.stopwatch.lap("setup")
        done += len(rows)
        observer.judged(done, len(items))
    return done == len(items)


def warn_of_answers(context: CampaignContext, items: SurveyedItems) -> None:
    """Note what looks wrong in the host's answers to the first inputs unchanged, and show it."""
    count = min(len(items.inputs), _MOST_WARNED_OF)
    evaluated: list[EvaluatedQuery] = []
    for batch in _evaluated(context, items, range(count), ()):
        evaluated += batch.evaluated
    if len(evaluated) == count:
        _warn(context, evaluated)
    context.stopwatch.lap("setup")  # of the host, which --time-limit does not count


def _warn(context: CampaignContext, evaluated: Sequence[EvaluatedQuery]) -> None:
    """Note what looks wrong in the answers to the first inputs, and show it."""
    by_arm, labels = answers_by_arm([query.outcome for query in evaluated]), context.seeds.labels
    known = None if labels is None else labels[: len(evaluated)]
    lines = [
        *non_finite_lines(
            non_finite_rows(context.panel.reading, evaluated),
            [arm for arm in context.panel.arms if arm is not Arm.DEVICE],
            count_of(len(evaluated), "input"),
        ),
        *context.task.warnings(by_arm.get(Arm.ORIGINAL), by_arm[Arm.TWIN], known),
    ]
    context.journal.note("warnings", lines)
    for line in lines:
        context.observer.warned(line)


def _evaluated(
    context: CampaignContext,
    items: SurveyedItems,
    wanted: Sequence[int],
    members: tuple[str, ...],
) -> Iterator[EvaluatedBatch[_Ticket]]:
    """Yield what the host's arms answer to items, batch after batch, until the user stops it."""
    arms = tuple(arm for arm in context.panel.arms if arm is not Arm.DEVICE)
    size = FIRST_BATCH
    left = iter(wanted)

    def batches() -> Iterator[tuple[_Ticket, list[Query], list[int]]]:
        while not context.stopped():
            part = list(islice(left, size))
            if not part:
                return
            made = [items.make(item) for item in part]
            ticket = [(item, input_crc32(input_)) for item, input_ in zip(part, made, strict=True)]
            queries = [Query(input_, arms, members) for input_ in made]
            yield ticket, queries, [items.input_of(item) for item in part]

    pipeline: Pipeline[_Ticket] = Pipeline(context.panel, context.recover)
    for batch in pipeline.stream(batches()):
        size = context.batch_size(batch.mean_seconds)
        yield batch
