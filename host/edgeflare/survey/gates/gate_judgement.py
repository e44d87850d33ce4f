"""The gates of a survey, judged by what the device has said, and what is said of each.

Whether a rate lies below a limit is tested anew after every draw. Each draw is turned into an
unbiased estimate of the rate by the probability that its item had, given all that was drawn before
(Shekhar et al. 2023). What the host foretells is known, and is bet on with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgeflare.conditions.condition_choice import ChosenCondition, conditions_of_set
from edgeflare.errors import UserError
from edgeflare.pages.facts import count_of
from edgeflare.record.json_types import Count
from edgeflare.statistics.sequential_test import (
    BoundedEstimates,
    LimitEvidence,
    evidence,
    sums_before,
)
from edgeflare.survey.gates.survey_gate import Gate
from edgeflare.survey.items.survey_facts import (
    ACCURACY_DROP,
    RATES,
    Fact,
    Flags,
    SurveyFacts,
    wrong,
)
from edgeflare.survey.rates.rate_interval import field_interval, rate
from edgeflare.survey.rates.rate_words import interval, percent, points
from edgeflare.survey.sampling_design import Draws, SamplingDesign, SamplingRounds, Strata

State = Literal["pass", "fail", "open"]

STATE_WORDS: Final[Mapping[State, str]] = {"pass": "held", "fail": "not held", "open": "undecided"}
"""The states of a gate in words."""


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """What became of a gate.

    Attributes:
        gate: the gate.
        state: whether it is held.
        value, low, high: what it measures, with the interval of the survey's confidence.
        field_high: upper limit where the inputs were drawn at random from the field; None for an
            accuracy drop.
        items: number of items that the gate is about.
        asked: items among them that the device was asked about.

    """

    gate: Gate
    state: State
    value: float
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
        facts: facts of all items.
        design: design that drew the items asked.
        sets: the surveyed conditions of each set, by its name.
        confidence: confidence of the decision.

    """
    of = gate.items(facts, sets)
    fact, before = _measured(gate, facts)
    shift = float(before[of].mean()) if before is not None and of.any() else 0.0
    sample = design.sample_of(facts.asked)
    found = rate(fact, sample, of, confidence)
    # Of a round that was cut short, the first draws were answered.
    answered = facts.asked[design.draws.items]
    draws = Draws(design.draws.items[answered], design.draws.shares[answered])
    decided = limit_evidence(fact, design.strata, draws, gate.limit + shift, of).decided(confidence)
    if 0 < found.asked == found.items:
        # As counts: 3 of 100 less 2 of 100 is below 0.01 where floats are subtracted.
        known = 0 if before is None else int(before[of].sum())
        decided = (found.seen - known) / found.items < gate.limit
    field_high = None
    if before is None:
        high = field_interval(found, fact, sample, facts.input, of, confidence).high
        field_high = min(1.0, high)
    state: State = "open" if decided is None else "pass" if decided else "fail"
    return GateOutcome(
        gate, state, found.value - shift, found.low - shift, found.high - shift, field_high,
        found.items, found.asked,
    )  # fmt: skip


def _measured(gate: Gate, facts: SurveyFacts) -> tuple[Fact, Flags | None]:
    """Return the fact whose rate counts, and the fact whose rate is taken from that."""
    if gate.measure == ACCURACY_DROP:
        return wrong(facts), facts.labelled & ~facts.original_right
    name = gate.measure if facts.has_original else f"kernel-{gate.measure}"
    return RATES.get(name, RATES[gate.measure])(facts), None


@dataclass(frozen=True, slots=True)
class JudgedGates:
    """The gates of a survey.

    Attributes:
        gates: the gates, in the user's order.
        confidence: confidence with which each is judged.
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
        return bool(outcomes) and all(outcome.state != "open" for outcome in outcomes)

    def described(self, facts: SurveyFacts, rounds: SamplingRounds) -> tuple[DescribedGate, ...]:
        """Return what a survey's document says of each gate."""
        outcomes = self.outcomes(facts, rounds)
        return tuple(described_outcome(outcome, self.sets, self.left_out) for outcome in outcomes)

    def name_of(self, gate: Gate) -> str:
        """Return what a gate is, and what it is not about; see `DescribedGate.name`."""
        set_name = gate.condition or ""
        surveyed = sorted(self.sets.get(set_name, ()))
        return _name(gate.text, set_name, surveyed, self.left_out.get(set_name, ()))


class DescribedGate(msgspec.Struct, frozen=True, kw_only=True):
    """A gate, and what became of it.

    Attributes:
        gate: as the user wrote it.
        measure: what has to stay below the limit, such as rate or accuracy-drop.
        limit: bound that the measure has to stay below.
        condition: the condition or the set that it names; null where it is about all.
        conditions: the surveyed conditions that it is about: all of a set that it names; null where
            it names none.
        left_out: conditions of the set that it names that are not surveyed.
        severity: the only one that counts; null for all.
        group: the only one that counts; null for all.
        state: whether it is held.
        sentence: what it came to, in a sentence.
        value, low, high: what it measures, with the interval of the survey's confidence.

    """

    gate: str
    measure: str
    limit: Annotated[float, msgspec.Meta(gt=0, lt=1)]
    condition: str | None
    conditions: tuple[str, ...] | None
    left_out: tuple[str, ...]
    severity: Count | None
    group: str | None
    state: State
    sentence: str
    value: float
    low: float
    high: float

    @property
    def name(self) -> str:
        """What it is, and what it is not about: `rate<0.01 under noise (of noise only …)`."""
        return _name(self.gate, self.condition, self.conditions or (), self.left_out)


def _name(
    text: str, condition: str | None, surveyed: Sequence[str], left_out: Sequence[str]
) -> str:
    return f"{text} (of {condition} only {', '.join(surveyed)})" if left_out else text


def require_each_once(gates: Sequence[Gate]) -> None:
    """Refuse a gate that is given twice, in the same words or in others."""
    known: dict[Gate, str] = {}
    for gate in gates:
        meant = replace(gate, text="")
        if meant in known:
            before = "" if known[meant] == gate.text else f", before as {known[meant]!r}"
            raise UserError(f"--gate {gate.text!r}: is given twice{before}: leave one out")
        known[meant] = gate.text


def surveyed_sets(chosen: Sequence[ChosenCondition]) -> dict[str, frozenset[str]]:
    """Return the names that chosen conditions have in a survey, by the sets that they are of."""
    names = {name for chosen_condition in chosen for name in chosen_condition.condition.sets}
    return {
        name: frozenset(
            chosen_condition.name
            for chosen_condition in chosen
            if name in chosen_condition.condition.sets
        )
        for name in names
    }


def conditions_left_out(
    domain: str, gates: Sequence[Gate], chosen: Sequence[ChosenCondition]
) -> dict[str, tuple[str, ...]]:
    """Return the conditions of sets that gates name and that are not surveyed, by the set's name.

    Args:
        domain: domain of the inputs.
        gates: gates of the survey.
        chosen: what is surveyed.

    """
    surveyed = {chosen_condition.condition.name for chosen_condition in chosen}
    sets = surveyed_sets(chosen).keys() & {gate.condition for gate in gates}
    left_out = {
        name: tuple(
            condition.name
            for condition in conditions_of_set(domain, name)
            if condition.name not in surveyed
        )
        for name in sorted(sets)
    }
    return {name: conditions for name, conditions in left_out.items() if conditions}


def described_outcome(
    outcome: GateOutcome,
    sets: Mapping[str, frozenset[str]],
    left_out: Mapping[str, tuple[str, ...]],
) -> DescribedGate:
    """Return what a survey's document says of a gate.

    Args:
        outcome: what became of it.
        sets: names of the surveyed conditions of each set, by its name.
        left_out: names of the others of a set, as `JudgedGates` has them.

    """
    gate = outcome.gate
    is_drop = gate.measure == ACCURACY_DROP
    figure = f"{points(outcome)} points" if is_drop else interval(outcome)
    about = None if gate.condition is None else sets.get(gate.condition, {gate.condition})
    return DescribedGate(
        gate=gate.text,
        measure=gate.measure,
        limit=gate.limit,
        condition=gate.condition,
        conditions=None if about is None else tuple(sorted(about)),
        left_out=left_out.get(gate.condition or "", ()),
        severity=gate.severity,
        group=gate.group,
        state=outcome.state,
        sentence=(
            f"{figure} of {count_of(outcome.items, 'item')}, of which the device was asked"
            f" about {outcome.asked:,}{_alone(outcome)}{_field(outcome)}"
        ),
        value=outcome.value,
        low=outcome.low,
        high=outcome.high,
    )


def _alone(outcome: GateOutcome) -> str:
    """Return why a gate about a slice has another interval than the tables, which pool."""
    gate = outcome.gate
    pooled = gate.group is None and (gate.condition, gate.severity) != (None, None)
    return ", by their answers alone" if pooled and outcome.asked < outcome.items else ""


def _field(outcome: GateOutcome) -> str:
    """Return what a gate that is held leaves open of the field; nothing where it says no more."""
    high = outcome.field_high
    if outcome.state != "pass" or high is None or high < outcome.gate.limit:
        return ""
    return f"; in the field they come from it may be up to {percent(high)}"


def limit_evidence(
    fact: Fact,
    strata: Strata,
    draws: Draws,
    limit: float,
    chosen: NDArray[np.bool_] | None = None,
) -> LimitEvidence:
    """Return what the draws say of a rate and a limit.

    Args:
        fact: what was foretold of each item, and seen of those that were drawn.
        strata: strata that the items were drawn from.
        draws: all of them, in their order.
        limit: limit that the rate is compared with.
        chosen: (items,) bool, the items that the rate is about; None for all.

    """
    of = np.ones(len(fact.seen), dtype=bool) if chosen is None else chosen
    return evidence(_estimates(fact, strata, draws, of), limit)


def _estimates(fact: Fact, strata: Strata, draws: Draws, of: NDArray[np.bool_]) -> BoundedEstimates:
    items = int(of.sum())
    drawn = draws.items
    chosen, foretold = of[drawn], fact.foretold[drawn]
    signs = np.where(foretold, -1.0, 1.0) * (fact.seen[drawn] != foretold)
    known = float((fact.foretold & of).sum()) + sums_before(signs * chosen)
    places = np.eye(strata.count)[strata.of[drawn]]
    left = strata.sizes - sums_before(places)
    open_plain = _left(strata, of & ~fact.foretold, places, chosen & ~foretold)
    open_foretold = _left(strata, of & fact.foretold, places, chosen & foretold)
    # The probability of each item that is left, and from it, given that a chosen one is drawn, how
    # many items the one that is drawn stands for.
    each = draws.shares / np.maximum(left, 1.0)
    total = (each * (open_plain + open_foretold)).sum(axis=1, keepdims=True)
    weights = np.divide(total, each, out=np.zeros_like(each), where=each > 0.0)
    mine = (weights * places).sum(axis=1)
    least = known - (weights * (open_foretold > 0.0)).max(axis=1, initial=0.0)
    most = known + (weights * (open_plain > 0.0)).max(axis=1, initial=0.0)
    values = known + signs * mine
    return BoundedEstimates(*(array[chosen] / items for array in (values, least, most)))


def _left(
    strata: Strata,
    items: NDArray[np.bool_],
    places: NDArray[np.float64],
    drawn: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return how many of some items each stratum has left before each draw: (draws, strata)."""
    sizes = np.bincount(strata.of[items], minlength=strata.count)
    return np.asarray(sizes - sums_before(places * drawn[:, np.newaxis]))
