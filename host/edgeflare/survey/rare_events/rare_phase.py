"""The phase of a survey that estimates a rare event's rate, after all else."""

from __future__ import annotations

import time
from dataclasses import dataclass

import msgspec
import numpy as np

from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.conditions.condition import Condition
from edgeflare.errors import InfrastructureError
from edgeflare.run.run_journal import RunJournal
from edgeflare.survey.phases.device_phase import AnswerWatch
from edgeflare.survey.phases.survey_observer import SurveyObserver
from edgeflare.survey.rare_events.rare_rate import RarePlan, RareProgress, RareRate
from edgeflare.survey.rare_events.rare_survey import headline_event, survey_rare_event
from edgeflare.survey.rare_events.splitting import SplittingPlan
from edgeflare.survey.record.survey_document import RareEstimate

RARE_KEY = "survey_rare"
"""The key of `about` under which the journal says what was found of a rare event."""

_STREAM = 0x4A4E
"""Tells the generator of a rare event from others of the run seed."""

_POINTS_FOR_A_QUERY = 10
_QUERIES_FOR_A_PARTICLE = 2
"""Device queries for each particle of the host: where few are allowed, the host's part is smaller
in proportion, too: whoever asks for less waits for less."""


@dataclass(frozen=True, slots=True)
class RarePhase:
    """Estimates how often a rare event happens, and notes that in the journal.

    A phase that was stopped or killed begins anew, and finds the same: all is drawn from the run
    seed, and the rate is noted once it is complete.

    Attributes:
        opened: the pair with the surveyed inputs as its seeds, and the devices.
        conditions: surveyed conditions, all equally likely.
        queries: device queries to spend, about.
        confidence: confidence of the interval.
        observer: sees progress.

    """

    opened: OpenedPair
    conditions: tuple[Condition, ...]
    queries: int
    confidence: float
    observer: SurveyObserver

    def __call__(self, context: CampaignContext) -> bool:
        """Estimate the rate unless it was, and return whether it is known; not if stopped.

        Raises:
            InfrastructureError: what a device decides has changed for good.

        """
        if RARE_KEY in context.journal.about():
            return True
        begun = time.monotonic()
        plan = rare_plan(self.queries, self.confidence)
        check = _RareCheck(AnswerWatch(context), context.panel.devices)
        check()

        def report(progress: RareProgress) -> None:
            check()
            self.observer.repeated(progress.repetitions, progress.of)

        self.observer.repeated(0, plan.repetitions)
        found = survey_rare_event(
            self.opened,
            self.conditions,
            headline_event(self.opened),
            plan,
            np.random.default_rng([context.plan.rng_seed, _STREAM]),
            progress=report,
            stopped=context.stopped,
            wait_until_cool=context.health.thermometer.wait_until_cool,
        )
        if found.rate is None or len(found.rate.repetitions) < plan.repetitions:
            return False
        took = time.monotonic() - begun
        estimate = _estimate(found.rate, check.asked, found.host_queries, took)
        context.journal.note(RARE_KEY, msgspec.to_builtins(estimate))
        return True


def rare_plan(queries: int, confidence: float) -> RarePlan:
    """Return how a rare event is looked for with about so many device queries."""
    usual = SplittingPlan()
    splitting = SplittingPlan(
        first=min(usual.first, _POINTS_FOR_A_QUERY * queries),
        particles=min(usual.particles, queries // _QUERIES_FOR_A_PARTICLE),
    )
    return RarePlan(splitting, device_queries=queries, confidence=confidence)


def _estimate(rate: RareRate, asked_again: int, host_queries: int, seconds: float) -> RareEstimate:
    """Return a rate as `survey.json` has it, with what it took."""
    return RareEstimate(
        value=rate.estimate,
        low=rate.low,
        high=rate.high,
        ceiling=rate.ceiling,
        unseen_share=rate.unseen_share,
        repetitions=rate.repetitions,
        thresholds=tuple(shell.below for shell in rate.shells[1:]),
        device_queries=rate.device_queries + asked_again,
        host_queries=host_queries,
        seconds=seconds,
    )


def noted_estimate(journal: RunJournal) -> RareEstimate | None:
    """Return what a journal says of rare events; None where nothing is noted.

    Raises:
        ValueError: the journal is damaged.

    """
    return msgspec.convert(journal.about().get(RARE_KEY), RareEstimate | None)


@dataclass(slots=True)
class _RareCheck:
    """Asks each device again about the first of its inputs, as the survey's rounds did.

    What is answered to that is no part of the survey's own queries, and is not kept: a rare event
    is estimated anew where it was not estimated to its end.

    Attributes:
        watch: compares the answers.
        devices: how many there are.
        asked: device queries that this took.

    """

    watch: AnswerWatch
    devices: int
    asked: int = 0

    def __call__(self) -> None:
        """Ask the devices whose profile does not say `canary_every = 0`.

        Raises:
            InfrastructureError: the answer of one has changed, and stays so.

        """
        context = self.watch.context
        for index in filter(self.watch.watches, range(self.devices)):
            self.watch.begin(index)
            self.asked += 1
            if self.watch.holds(index, context.ask_device(index)):
                continue
            line = (
                f"{context.health.record.devices[index].profile.name}: what it decides about input"
                f" {index} has changed; what was answered about rare events was dropped, and is"
                " asked again on --resume: look after the device"
            )
            context.health.record.warn(line)
            raise InfrastructureError(line)
