"""The device's part of a survey: it is asked about items round by round, until that is enough.

An input that is asked again in every round tells whether the devices still answer as they did. A
search asks its canaries in between its queries, and knows which chains to drop. A survey has rounds
in their place: a good answer vouches for the round before it, and where one has changed for good,
what was said in the round is dropped, so that a resumed survey asks it again. That is done to the
answers of all devices: what is left of a round that was cut short has to be its first draws, which
do not depend on the inputs, and each device has some of the inputs.

A device that was lost, or whose host was killed, may have been reset since, and then vouches for
nothing that was answered before. So the journal notes what was vouched for. Of the rest the last
answers are asked for again, and where they are others now, the rest is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.campaign.pipeline import EvaluatedBatch, Pipeline
from edgeflare.core.query import EvaluatedQuery, Query
from edgeflare.errors import InfrastructureError
from edgeflare.run.answer_rows import from_rows, to_row
from edgeflare.run.journal_rows import AnswerRow
from edgeflare.run.seed_ids import device_of
from edgeflare.run.survey_rows import DeviceRow
from edgeflare.survey.gates.gate_judgement import JudgedGates
from edgeflare.survey.items.survey_facts import SurveyFacts
from edgeflare.survey.items.survey_items import (
    FIRST_BATCH,
    ItemJudgement,
    SurveyedItems,
    require_same_input,
)
from edgeflare.survey.phases.survey_observer import DeviceProgress, SurveyObserver
from edgeflare.survey.rates.rate_interval import Rate
from edgeflare.survey.rates.slices import overall_rate
from edgeflare.survey.record.survey_journal import VOUCHED_KEY, facts_of, vouched_draws
from edgeflare.survey.record.survey_plan import SamplingEnd, SurveyPlan
from edgeflare.survey.sampling_design import SamplingRounds

_ASKED_AGAIN = 8
"""Last answers of a round cut short that are asked for again."""


@dataclass(frozen=True, slots=True)
class StopRule:
    """Ends a survey after a round, by what was asked and found alone.

    Attributes:
        plan: what is asked.
        gates: gates that end the survey once all are decided.

    """

    plan: SurveyPlan
    gates: JudgedGates

    def reached(
        self, facts: SurveyFacts, rounds: SamplingRounds, overall: Rate
    ) -> SamplingEnd | None:
        """Return why the survey ends after a round, or None.

        Args:
            facts: what is known.
            rounds: what was drawn.
            overall: the over-all rate of deviations.

        """
        asked = int(facts.asked.sum())
        if asked == facts.items:
            return "all-items"
        if self.gates.decided(facts, rounds):
            return "gates"
        if self.plan.precision is not None and half_width(overall) <= self.plan.precision:
            return "precision"
        return "device-queries" if asked >= rounds.most else None


def half_width(rate: Rate) -> float:
    """Return half the width of a rate's interval."""
    return (rate.high - rate.low) / 2.0


@dataclass(slots=True)
class _Pace:
    """How many items the next batch has."""

    size: int = FIRST_BATCH


@dataclass(frozen=True, slots=True)
class DevicePhase:
    """The device's part of a survey.

    What is drawn, and when it ends, follows from the items that were asked and what was answered:
    so a survey that is gone on with draws the rounds that it drew before, asks what is missing of
    them, and ends as one that nothing stopped. The time limit is the exception.

    Attributes:
        context: the campaign.
        items: what can be asked.
        judgement: judges the answers.
        rounds: draws items; nothing was drawn yet.
        stop: says when that is enough.
        observer: sees progress.

    """

    context: CampaignContext
    items: SurveyedItems
    judgement: ItemJudgement
    rounds: SamplingRounds
    stop: StopRule
    observer: SurveyObserver

    def run(self) -> SamplingEnd | None:
        """Ask the device, and return why it is asked no further; None if the user stopped it.

        Raises:
            InfrastructureError: the answers of a device have changed.
            UserError: a condition did not make the same input again.

        """
        drawn: set[int] = set()
        overall: Rate | None = None
        check = _RoundCheck(self.context, self.items)
        while items := self.rounds.draw():
            unvouched = check.unvouched(items, len(drawn))
            if unvouched and not self._repeats(unvouched[-_ASKED_AGAIN:]):
                check.drop(unvouched)
            known = self.context.journal.survey.device_items()
            missing = [item for item in items if item not in known]
            drawn.update(items)
            if missing and overall is not None:  # not of rounds that were asked before a stop
                self._report(len(drawn) - len(missing), overall, ended=False)
            if missing and not self._ask(missing, len(drawn) - len(missing), check):
                if self.context.stopped():
                    return None
                asked = len(self.context.journal.survey.device_items() & drawn)
                self._report(asked, None, ended=True)
                return "time-limit"
            if unvouched and not missing:
                check.after_round(items, len(drawn))
            ended, overall = self._tell(items, drawn)
            if ended is not None:
                self._report(len(drawn), overall, ended=True)
                return ended
        return "all-items"

    def _tell(self, items: Sequence[int], drawn: set[int]) -> tuple[SamplingEnd | None, Rate]:
        """Tell a round that was answered; return why the survey ends with it, and the rate."""
        facts = facts_of(self.context.journal, drawn)
        self.rounds.tell(items, facts)
        sample = self.rounds.design.sample_of(facts.asked)
        overall = overall_rate(facts, sample, self.stop.plan.confidence)
        return self.stop.reached(facts, self.rounds, overall), overall

    def _ask(self, items: Sequence[int], done: int, check: _RoundCheck) -> bool:
        """Ask about items, and return whether all of them were answered.

        Args:
            items: what the device is asked about.
            done: how many it was asked about before.
            check: vouches for what it answers.

        """
        context, asked, pace = self.context, 0, _Pace()
        check.before_round(items)
        pipeline: Pipeline[list[int]] = context.pipeline()
        for batch in pipeline.stream(self._batches(items, pace)):
            rows = self._rows(batch)
            with context.journal.transaction():
                context.journal.survey.write_device(rows)
                context.stopwatch.lap("wall", batch.device_busy_seconds)
            pace.size = context.batch_size(batch.mean_seconds)
            asked += len(rows)
            self._report(done + asked, None, ended=False)
        check.after_round(items, done + asked)
        return asked == len(items)

    def _repeats(self, items: Sequence[int]) -> bool:
        """Whether the devices decide about items again as the journal says that they did."""
        context = self.context
        said = {row.item: _decided(row) for row in context.journal.survey.device()}
        queries = [Query(self.items.make(item), context.panel.arms) for item in items]
        inputs = [self.items.input_of(item) for item in items]
        asked = context.pipeline().stream([(list(items), queries, inputs)])
        rows = [row for batch in asked for row in self._rows(batch)]
        return all(_decided(row) == said[row.item] for row in rows)

    def _rows(self, batch: EvaluatedBatch[list[int]]) -> list[DeviceRow]:
        """Return what the answers to a batch come to."""
        return [
            self.judgement.of_device(item, query)
            for item, query in zip(batch.ticket, batch.evaluated, strict=True)
        ]

    def _batches(
        self, items: Sequence[int], pace: _Pace
    ) -> Iterator[tuple[list[int], list[Query], list[int]]]:
        """Yield items with their queries on all arms, until the user or the time stops it.

        Raises:
            UserError: an input is not made as it was for the host's part.

        """
        arms = self.context.panel.arms
        left, known = iter(items), self.context.journal.survey.checksums()
        while not self.context.stopped() and not self._late():
            part = list(islice(left, pace.size))
            if not part:
                return
            made = [self.items.make(item) for item in part]
            for item, input_ in zip(part, made, strict=True):
                require_same_input(self.items, item, input_, known[item])
            queries = [Query(input_, arms) for input_ in made]
            yield part, queries, [self.items.input_of(item) for item in part]

    def _late(self) -> bool:
        limit = self.stop.plan.time_limit_seconds
        return limit is not None and self.context.journal.times().wall >= limit

    def _report(self, asked: int, overall: Rate | None, *, ended: bool) -> None:
        aim = self.stop.plan.precision
        estimate = None if overall is None else overall.value
        half = None if overall is None else half_width(overall)
        self.observer.asked(DeviceProgress(asked, self.rounds.most, ended, estimate, half, aim))


def _decided(row: DeviceRow) -> tuple[bool, bool, bool, int]:
    return row.deviates, row.kernel, row.failed, row.device_decision


class _RoundCheck:
    """Asks each device again about the first of its inputs, as it is.

    Devices whose profile says `canary_every = 0` are not asked.
    """

    def __init__(self, context: CampaignContext, items: SurveyedItems) -> None:
        """Watch over the devices of a campaign, each of which has some of the items."""
        self._context = context
        self._items = items
        self._watch = AnswerWatch(context)

    def unvouched(self, items: Sequence[int], before: int) -> list[int]:
        """Return the items of a round that were answered and that nothing vouches for, in order.

        There are none where no device of the round is watched.

        Args:
            items: items of the round, as they were drawn.
            before: how many were drawn before them.

        """
        if not self._concerned(items):
            return []
        journal = self._context.journal
        answered = journal.survey.device_items()
        return [
            item for item in items[max(0, vouched_draws(journal) - before) :] if item in answered
        ]

    def drop(self, items: Sequence[int]) -> list[int]:
        """Drop what was answered about items, and return which these were."""
        journal = self._context.journal
        dropped = sorted(journal.survey.device_items().intersection(items))
        with journal.transaction():
            journal.survey.drop_device(dropped)
        return dropped

    def before_round(self, items: Sequence[int]) -> None:
        """Ask the devices of a round for the answer that is to stay, unless they were asked."""
        for index in self._concerned(items):
            self._watch.begin(index)

    def after_round(self, items: Sequence[int], done: int) -> None:
        """Ask the canaries of the devices of a round again, and note how far their answers hold.

        Args:
            items: items that were to be asked.
            done: number of draws, from the first on, that were asked by now.

        Raises:
            InfrastructureError: the answer of one has changed, and stays so.

        """
        for index in self._concerned(items):
            if not self._watch.holds(index, self._watch.ask(index)):
                self._end(index, items)
        self._context.journal.note(VOUCHED_KEY, done)

    def _end(self, index: int, items: Sequence[int]) -> None:
        """Drop a round, in which the answer of a device has changed, and end the survey."""
        context, dropped = self._context, self.drop(items)
        name = context.health.record.devices[index].profile.name
        line = (
            f"{name}: what it decides about input {index} has changed; {len(dropped)} of this"
            " round's answers were dropped, to be asked again with --resume: look after the device"
        )
        context.health.record.warn(line)
        raise InfrastructureError(line)

    def _concerned(self, items: Sequence[int]) -> list[int]:
        """Return the devices that have some of the items, and are to be checked."""
        devices = self._context.panel.devices
        mine = {device_of(self._items.input_of(item), devices) for item in items}
        return [index for index in sorted(mine) if self._watch.watches(index)]


@dataclass(frozen=True, slots=True)
class AnswerWatch:
    """Compares what each device answers to the first of its inputs with its first answer to it.

    A device is meant by its place among the devices, which is that of its first input, too.

    Attributes:
        context: the campaign.

    """

    context: CampaignContext

    def watches(self, index: int) -> bool:
        """Whether a device is watched; not where its profile says `canary_every = 0`."""
        return bool(self.context.health.record.devices[index].profile.canary_every)

    def begin(self, index: int) -> None:
        """Ask a device for the answer that is to stay, unless it was asked before."""
        if not self._rows(index):
            self._write(index, 1, self.context.ask_device(index))

    def ask(self, index: int) -> EvaluatedQuery:
        """Ask a device again, and keep what it answers in the journal."""
        one = self.context.ask_device(index)
        self._write(index, len(self._rows(index)) + 1, one)
        return one

    def holds(self, index: int, query: EvaluatedQuery) -> bool:
        """Note how an answer compares with the first one; not where another is given for good.

        Where it decides otherwise, the device is asked once more.

        Args:
            index: index of the device.
            query: what it answered now.

        """
        record = self.context.health.record
        readings, name = record.readings[index], record.devices[index].profile.name
        first, *_ = self._rows(index)
        (reference,) = from_rows(self.context.panel.reading, [first])
        held, repetition = True, query.repeated(reference)
        readings.count_canary(repetition)
        if repetition == "varied":
            record.warn(
                f"{name} does not repeat its answers to the bit: what it decides about input"
                f" {index} held, and its outputs varied"
            )
        elif repetition == "changed":
            held = self.context.ask_device(index).repeated(reference) != "changed"
            if held:
                record.warn(
                    f"{name} decided differently about input {index} once, and as before when asked"
                    " again"
                )
        record.keep()
        return held

    def _rows(self, index: int) -> list[AnswerRow]:
        return self.context.journal.steps("canary", index)

    def _write(self, index: int, n: int, query: EvaluatedQuery) -> None:
        row = to_row(
            self.context.panel.reading, "canary", index, n, self.context.seeds.inputs[index], query
        )
        self.context.journal.write_answers([row])
