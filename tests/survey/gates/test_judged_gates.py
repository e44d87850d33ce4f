"""The gates of a survey, judged by what the device answered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from constructed_surveys import as_asked, constructed_facts
from edgeflare.conditions.condition import Condition
from edgeflare.conditions.condition_choice import ChosenCondition, chosen_conditions
from edgeflare.errors import UserError
from edgeflare.survey.estimate.rate import Sample
from edgeflare.survey.gates.gate_state import GateOutcome
from edgeflare.survey.gates.judged_gates import (
    JudgedGates,
    conditions_left_out,
    described_outcome,
    require_each_once,
    surveyed_sets,
)
from edgeflare.survey.gates.survey_gate import parse_gate
from edgeflare.survey.items.sampling_rounds import SamplingRounds
from edgeflare.survey.items.survey_facts import SurveyFacts


@pytest.fixture(scope="module")
def calm() -> SurveyFacts:
    """Facts of a device that never deviates."""
    facts = constructed_facts(inputs=150)
    never = np.zeros(facts.items, bool)
    names = ("compression", "compression_tied", "deviates", "deviates_tied", "kernel", "failed")
    changes: dict[str, Any] = dict.fromkeys(names, never)
    return replace(facts, **changes)


def answered(facts: SurveyFacts, count: int) -> tuple[SurveyFacts, SamplingRounds]:
    """Facts of which the device answered so many of the first round, and the rounds."""
    rounds = SamplingRounds.of(facts, 0, None)
    asked = np.zeros(facts.items, bool)
    asked[rounds.draw()[:count]] = True
    return as_asked(facts, Sample(np.zeros(facts.items, np.int64), asked)), rounds


def test_gates_are_decided_once_all_are(calm: SurveyFacts) -> None:
    facts, rounds = answered(calm, 256)
    wide, narrow = parse_gate("rate<0.05"), parse_gate("rate<0.0001")
    assert JudgedGates((wide,)).decided(facts, rounds)
    assert not JudgedGates((wide, narrow)).decided(facts, rounds)
    assert not JudgedGates().decided(facts, rounds)


def test_what_was_drawn_and_not_asked_decides_nothing(calm: SurveyFacts) -> None:
    facts, rounds = answered(calm, 10)
    (outcome,) = JudgedGates((parse_gate("rate<0.05"),)).outcomes(facts, rounds)
    assert (outcome.state, outcome.asked <= 10) == ("undecided", True)


@pytest.mark.parametrize(
    ("again", "said"),
    [("rate<0.01", "'rate<0.01': is given twice: leave"), ("rate < 1%", "before as 'rate<0.01'")],
)
def test_a_gate_is_given_once(again: str, said: str) -> None:
    gates = ("rate<0.01", "rate<0.02", "rate<0.01 under fog", "kernel-rate<0.01")
    require_each_once([parse_gate(one) for one in gates])
    with pytest.raises(UserError, match=said):
        require_each_once([parse_gate(one) for one in (*gates, again)])


def test_an_outcome_says_its_figures(calm: SurveyFacts) -> None:
    facts, rounds = answered(calm, 256)
    gates = JudgedGates((parse_gate("rate<0.05"),))
    said = described_outcome(gates.outcomes(facts, rounds)[0], {}, {})
    assert (said["gate"], said["state"], said["estimate"]) == ("rate<0.05", "held", 0.0)
    assert "of which the device was asked about" in said["words"]


def test_a_gate_about_a_slice_says_that_it_does_not_pool() -> None:
    gate = parse_gate("rate<0.01 under fog")
    outcome = GateOutcome(gate, "undecided", 0.0, 0.0, 0.3, 0.4, 300, 21)
    said = described_outcome(outcome, {}, {})["words"]
    assert said.endswith("of which the device was asked about 21, by their answers alone")
    whole = described_outcome(replace(outcome, items=21), {}, {})["words"]
    assert whole.endswith("asked about 21")


def test_small_figures_of_an_outcome_keep_their_digits() -> None:
    gate = parse_gate("rate<0.0001")
    outcome = GateOutcome(gate, "held", 2e-5, 1e-6, 0.00004, 0.00005, 90_000, 3_000)
    said = described_outcome(outcome, {}, {})["words"]
    assert said == (
        "0.0020 % (0.0001–0.0040) of 90,000 items, of which the device was asked about 3,000"
    )
    beyond = described_outcome(replace(outcome, field_high=0.0002), {}, {})["words"]
    assert beyond == f"{said}; in the field they come from it may be up to 0.020 %"


def test_a_drop_is_said_in_points_and_one_item_is_one() -> None:
    gate = parse_gate("accuracy-drop<2%")
    said = described_outcome(GateOutcome(gate, "held", 0.01, -0.02, 0.03, None, 1, 1), {}, {})
    assert said["words"] == (
        "+1.00 (-2.00 to 3.00) points of 1 item, of which the device was asked about 1"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rate<0.1", ("rate", 0.1, None, None, None, None)),
        ("rate<0.1 under fog", ("rate", 0.1, "fog", ["fog"], None, None)),
        (
            "accuracy-drop<2% under weather at severity 3 for group seen under dark",
            ("accuracy-drop", 0.02, "weather", ["dark", "fog"], 3, "seen under dark"),
        ),
    ],
)
def test_an_outcome_says_what_it_is_about(text: str, says: tuple[Any, ...]) -> None:
    outcome = GateOutcome(parse_gate(text), "undecided", 0.0, 0.0, 0.1, None, 60, 10)
    said = described_outcome(outcome, {"weather": frozenset({"fog", "dark"})}, {})
    keys = ("measure", "limit", "condition", "conditions", "severity", "group")
    assert tuple(said[key] for key in keys) == says


def test_sets_hold_the_names_that_conditions_have_in_the_survey() -> None:
    made = Condition("fog", "image", ("common", "weather"), "", lambda one, _severity, _rng: one)
    plain = replace(made, name="gamma", sets=("camera",))
    chosen = (ChosenCondition("mist", made, (1,)), ChosenCondition("gamma", plain, (2,)))
    assert surveyed_sets(chosen) == {
        "common": frozenset({"mist"}),
        "weather": frozenset({"mist"}),
        "camera": frozenset({"gamma"}),
    }


def test_a_gate_about_a_part_of_a_set_says_what_is_left_out() -> None:
    gate, whole = parse_gate("rate<0.1 under weather"), parse_gate("rate<0.1 under noise")
    chosen = chosen_conditions("image", "fog,noise", (1,))
    left_out = conditions_left_out("image", (gate, whole, parse_gate("rate<0.1")), chosen)
    named = chosen_conditions("image", "weather", (1,))
    assert {"fog", *left_out["weather"]} == {one.name for one in named}
    assert "fog" not in left_out["weather"]
    assert left_out.keys() == {"weather"}
    outcome = GateOutcome(gate, "held", 0.0, 0.0, 0.1, None, 60, 10)
    assert described_outcome(outcome, {}, left_out)["left_out"] == list(left_out["weather"])
    assert described_outcome(replace(outcome, gate=whole), {}, left_out)["left_out"] == []


def test_a_condition_under_a_name_of_the_users_own_is_not_left_out() -> None:
    gate = parse_gate("rate<0.1 under weather")
    fog, *others = chosen_conditions("image", "weather", (1,))
    chosen = (replace(fog, name="mist"), *others)
    assert conditions_left_out("image", (gate,), chosen) == {}
