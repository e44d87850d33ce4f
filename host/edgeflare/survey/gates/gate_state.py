"""Whether a gate is held, not held, or not decided by what the device has said so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from edgeflare.survey.estimate.field_interval import field_interval
from edgeflare.survey.estimate.rate import Fact, Rate, Sample
from edgeflare.survey.estimate.rate_interval import rate
from edgeflare.survey.estimate.sampling_design import Draws, SamplingDesign
from edgeflare.survey.estimate.sequential_test import limit_evidence
from edgeflare.survey.gates.survey_gate import Gate
from edgeflare.survey.items.measures import ACCURACY_DROP, RATES, wrong
from edgeflare.survey.items.survey_facts import Flags, SurveyFacts

State = Literal["held", "not held", "undecided"]

HELD: Final[State] = "held"
NOT_HELD: Final[State] = "not held"
UNDECIDED: Final[State] = "undecided"
"""The states of a gate."""


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """What became of a gate.

    Attributes:
        gate: the gate.
        state: whether it is held.
        estimate, low, high: of what it measures, with the interval of the survey's confidence.
        field_high: upper limit where the inputs were drawn at random from the field; None for an
            accuracy drop.
        items: that it is about.
        asked: of them, how many the device was asked about.

    """

    gate: Gate
    state: State
    estimate: float
    low: float
    high: float
    field_high: float | None
    items: int
    asked: int


def gate_outcome(
    gate: Gate,
    facts: SurveyFacts,
    design: SamplingDesign,
    sets: Mapping[str, frozenset[str]],
    confidence: float,
) -> GateOutcome:
    """Return what became of a gate.

    It is about the inputs that are surveyed, whatever field they come from. It may be asked after
    every round: a gate whose rate is not below its limit is held with a probability of at most
    1 − confidence, however often one looks.

    Args:
        gate: the gate.
        facts: of all items.
        design: that drew the items asked.
        sets: the surveyed conditions of each set, by its name.
        confidence: of the decision.

    """
    of = gate.items(facts, sets)
    fact, before = _measured(gate, facts)
    shift = float(before[of].mean()) if before is not None and of.any() else 0.0
    sample = design.sample_of(facts.asked)
    found = rate(fact, sample, of, confidence)
    draws = _answered(design.draws, facts)
    decided = limit_evidence(fact, design.strata, draws, gate.limit + shift, of).decided(confidence)
    if 0 < found.asked == found.items:
        decided = found.estimate - shift < gate.limit
    state: State = "undecided" if decided is None else "held" if decided else "not held"
    return GateOutcome(
        gate, state, found.estimate - shift, found.low - shift, found.high - shift,
        None if before is not None else _field_high(found, fact, sample, facts, of, confidence),
        found.items, found.asked,
    )  # fmt: skip


def _field_high(
    found: Rate,
    fact: Fact,
    sample: Sample,
    facts: SurveyFacts,
    of: Flags,
    confidence: float,
) -> float:
    """Return the upper limit of a rate in the field."""
    return min(1.0, field_interval(found, fact, sample, facts.input, of, confidence).high)


def _answered(draws: Draws, facts: SurveyFacts) -> Draws:
    """Return the draws that the device answered: of a round that was cut short, the first ones."""
    answered = facts.asked[draws.items]
    return Draws(draws.items[answered], draws.shares[answered])


def _measured(gate: Gate, facts: SurveyFacts) -> tuple[Fact, Flags | None]:
    """Return the fact whose rate counts, and the fact whose rate is taken from that."""
    if gate.measure == ACCURACY_DROP:
        return wrong(facts), facts.labelled & ~facts.original_right
    name = gate.measure if facts.has_original else f"kernel-{gate.measure}"
    return RATES.get(name, RATES[gate.measure])(facts), None
