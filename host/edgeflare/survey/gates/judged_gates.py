"""The gates of a survey, judged by what the device has said, and what is said of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from edgeflare.conditions.condition_choice import ChosenCondition, conditions_of_set
from edgeflare.errors import UserError
from edgeflare.survey.gates.gate_state import HELD, UNDECIDED, GateOutcome, gate_outcome
from edgeflare.survey.gates.survey_gate import Gate
from edgeflare.survey.items.measures import ACCURACY_DROP
from edgeflare.survey.items.sampling_rounds import SamplingRounds
from edgeflare.survey.items.survey_facts import SurveyFacts
from edgeflare.survey.rates.rate_words import counted, interval, percent, points


@dataclass(frozen=True, slots=True)
class JudgedGates:
    """The gates of a survey.

    Attributes:
        gates: in the user's order.
        confidence: with which each is judged.
        sets: names of the surveyed conditions of each set, by its name.
        left_out: names of the conditions of a set that a gate names and that are not surveyed, by
            the set's name; sets that are surveyed whole are not in it.

    """

    gates: tuple[Gate, ...] = ()
    confidence: float = 0.95
    sets: Mapping[str, frozenset[str]] = field(default_factory=dict)
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def outcomes(self, facts: SurveyFacts, rounds: SamplingRounds) -> list[GateOutcome]:
        """Return what became of each gate."""
        return [
            gate_outcome(gate, facts, rounds.design, self.sets, self.confidence)
            for gate in self.gates
        ]

    def decided(self, facts: SurveyFacts, rounds: SamplingRounds) -> bool:
        """Whether there are gates, and each of them is decided."""
        outcomes = self.outcomes(facts, rounds)
        return bool(outcomes) and all(one.state != UNDECIDED for one in outcomes)

    def described(self, facts: SurveyFacts, rounds: SamplingRounds) -> list[dict[str, Any]]:
        """Return what a survey's document says of each gate, as plain JSON values."""
        return [
            described_outcome(one, self.sets, self.left_out) for one in self.outcomes(facts, rounds)
        ]


def require_each_once(gates: Sequence[Gate]) -> None:
    """Refuse a gate that is given twice, in the same words or in others.

    Raises:
        UserError: one is.

    """
    known: dict[Gate, str] = {}
    for gate in gates:
        meant = replace(gate, text="")
        if meant in known:
            before = "" if known[meant] == gate.text else f", before as {known[meant]!r}"
            raise UserError(f"--gate {gate.text!r}: is given twice{before}: leave one out")
        known[meant] = gate.text


def surveyed_sets(chosen: Sequence[ChosenCondition]) -> dict[str, frozenset[str]]:
    """Return the names that chosen conditions have in a survey, by the sets that they are of."""
    names = {name for one in chosen for name in one.condition.sets}
    return {
        name: frozenset(one.name for one in chosen if name in one.condition.sets) for name in names
    }


def conditions_left_out(
    domain: str, gates: Sequence[Gate], chosen: Sequence[ChosenCondition]
) -> dict[str, tuple[str, ...]]:
    """Return the conditions of sets that gates name and that are not surveyed, by the set's name.

    Args:
        domain: of the inputs.
        gates: of the survey.
        chosen: what is surveyed.

    """
    surveyed = {one.condition.name for one in chosen}
    sets = surveyed_sets(chosen).keys() & {gate.condition for gate in gates}
    left_out = {
        name: tuple(one.name for one in conditions_of_set(domain, name) if one.name not in surveyed)
        for name in sorted(sets)
    }
    return {name: conditions for name, conditions in left_out.items() if conditions}


def described_outcome(
    outcome: GateOutcome,
    sets: Mapping[str, frozenset[str]],
    left_out: Mapping[str, tuple[str, ...]],
) -> dict[str, Any]:
    """Return what a survey's document says of a gate, as plain JSON values.

    Args:
        outcome: what became of it.
        sets: names of the surveyed conditions of each set, by its name.
        left_out: names of the others of a set, as `JudgedGates` has them.

    """
    gate = outcome.gate
    figures = {"estimate": outcome.estimate, "low": outcome.low, "high": outcome.high}
    about = None if gate.condition is None else sets.get(gate.condition, {gate.condition})
    return {
        "gate": gate.text,
        "measure": gate.measure,
        "limit": gate.limit,
        "condition": gate.condition,
        "conditions": None if about is None else sorted(about),
        "left_out": list(left_out.get(gate.condition or "", ())),
        "severity": gate.severity,
        "group": gate.group,
        "state": outcome.state,
        "words": (
            f"{_figure(gate, figures)} of {counted(outcome.items, 'item', 'items')}, of which the"
            f" device was asked about {outcome.asked:,}{_alone(outcome)}{_field(outcome)}"
        ),
        **figures,
    }


def _figure(gate: Gate, figures: Mapping[str, float]) -> str:
    """Return what a gate's measure came to: a drop in points, a rate in percent."""
    return f"{points(figures)} points" if gate.measure == ACCURACY_DROP else interval(figures)


def _alone(outcome: GateOutcome) -> str:
    """Return why a gate about a slice has another interval than the tables, which pool."""
    gate = outcome.gate
    pooled = gate.group is None and (gate.condition, gate.severity) != (None, None)
    return ", by their answers alone" if pooled and outcome.asked < outcome.items else ""


def _field(outcome: GateOutcome) -> str:
    """Return what a gate that is held leaves open of the field; nothing where it says no more."""
    high = outcome.field_high
    if outcome.state != HELD or high is None or high < outcome.gate.limit:
        return ""
    return f"; in the field they come from it may be up to {percent(high)}"
