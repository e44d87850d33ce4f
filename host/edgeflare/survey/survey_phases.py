"""The phases of a survey: the host's answers, the device's, and the findings among them."""

from __future__ import annotations

from dataclasses import dataclass

from threadpoolctl import threadpool_limits

from edgeflare.campaign.campaign import StoppedBy
from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.campaign.reevaluation import evaluate_again
from edgeflare.core.arm import Arm
from edgeflare.core.interrupt import Interrupt
from edgeflare.core.truths import Truths
from edgeflare.survey.gates.judged_gates import JudgedGates
from edgeflare.survey.items.deviating_items import choose_findings, store_findings
from edgeflare.survey.items.item_judgement import ItemJudgement
from edgeflare.survey.items.sampling_rounds import SamplingRounds
from edgeflare.survey.items.surveyed_items import SurveyedItems
from edgeflare.survey.phases.device_phase import DevicePhase
from edgeflare.survey.phases.host_phase import judge_on_host, warn_of_answers
from edgeflare.survey.phases.stop_rule import SamplingEnd, StopRule
from edgeflare.survey.phases.survey_observer import SurveyObserver
from edgeflare.survey.rare.rare_phase import RarePhase
from edgeflare.survey.rates.overall_rate import cell_rates
from edgeflare.survey.record.survey_journal import facts_of
from edgeflare.survey.record.survey_plan import ENDED_KEY, noted_plan


@dataclass(frozen=True, slots=True)
class SurveyPhases:
    """The phases of a survey, as `run_recorded_campaign` takes them.

    What is asked is what its journal says.

    Attributes:
        items: what is surveyed.
        observer: sees progress.
        gates: which end it once all are decided.
        rare: estimates the rate of a rare event after all else; None where that is not asked for.

    """

    items: SurveyedItems
    observer: SurveyObserver
    gates: JudgedGates
    rare: RarePhase | None = None

    def __call__(self, context: CampaignContext, interrupt: Interrupt) -> StoppedBy | None:
        """Run a survey to its end, or go on with one that was stopped.

        Returns:
            What stopped it before its end, or None. Precision, budget and time limit are ends.

        Raises:
            InfrastructureError: a device was lost for good, or its answers have changed.

        """
        with threadpool_limits(1):  # as in a search
            return self._run(context, interrupt)

    def _run(self, context: CampaignContext, interrupt: Interrupt) -> StoppedBy | None:
        decoder = context.panel.reading.decoders[Arm.TWIN]
        truths = Truths.of_seeds(decoder, context.seeds)
        judgement = ItemJudgement(context.plan.goal, decoder.choices, truths)
        context.health.thermometer.read_all()
        if not judge_on_host(context, self.items, judgement, self.observer):
            return interrupt.by
        if context.journal.about().get(ENDED_KEY) is None:
            warn_of_answers(context, self.items)
            if not self._ask(context, judgement):
                return interrupt.by
        stopped = evaluate_again(context, interrupt)
        if stopped is None and self.rare is not None and not self.rare(context):
            stopped = interrupt.by
        context.health.thermometer.read_all()
        return stopped

    def _ask(self, context: CampaignContext, judgement: ItemJudgement) -> bool:
        """Ask the device, and store what deviates; return whether that came to its end."""
        facts, plan = facts_of(context.journal, ()), noted_plan(context.journal)
        seed, queries = context.plan.rng_seed, plan.device_queries
        rounds = SamplingRounds.of(facts, seed, queries, plan.earlier_queries)
        stop = StopRule(plan, self.gates)
        phase = DevicePhase(context, self.items, judgement, rounds, stop, self.observer)
        ended = phase.run()
        if ended is not None:
            self._end(context, rounds, ended, plan.findings)
        return ended is not None

    def _end(
        self, context: CampaignContext, rounds: SamplingRounds, ended: SamplingEnd, most: int
    ) -> None:
        """Note why the device is asked no further, and store findings: both or neither.

        Findings that were stored when the survey ended before stay.
        """
        facts = facts_of(context.journal)
        rates = cell_rates(facts, rounds.design.sample_of(facts.asked))
        stored = context.journal.triggers()
        rows = [
            row
            for row in context.journal.survey.device()
            if self.items.input_of(row.item) not in stored
        ]
        chosen = choose_findings(rows, facts.inputs, rates, max(0, most - len(stored)))
        with context.journal.transaction():
            store_findings(context, self.items, chosen)
            context.journal.note(ENDED_KEY, ended)
