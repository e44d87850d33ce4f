"""When a survey has asked the device enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from edgeflare.survey.estimate.rate import Rate
from edgeflare.survey.gates.judged_gates import JudgedGates
from edgeflare.survey.items.sampling_rounds import SamplingRounds
from edgeflare.survey.items.survey_facts import SurveyFacts
from edgeflare.survey.record.survey_plan import SurveyPlan

SamplingEnd = Literal["precision", "gates", "device-queries", "time-limit", "all-items"]
"""Why the device is asked about no further item."""


@dataclass(frozen=True, slots=True)
class StopRule:
    """Ends a survey after a round, by what was asked and found alone.

    Attributes:
        plan: what is asked.
        gates: which end it once all are decided.

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
