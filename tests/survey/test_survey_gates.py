"""The gates of a survey: as users write them, as they are judged, and what is said of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from changed_documents import changed
from constructed_surveys import (
    as_asked,
    constructed_document,
    constructed_facts,
    facts_of,
    gate_entry,
)
from edgeflare.cli.survey_presentation import survey_suite
from edgeflare.conditions.condition import Condition
from edgeflare.conditions.condition_choice import ChosenCondition, chosen_conditions
from edgeflare.errors import UserError
from edgeflare.survey.gates.gate_judgement import (
    GateOutcome,
    JudgedGates,
    conditions_left_out,
    described_outcome,
    gate_outcome,
    require_each_once,
    surveyed_sets,
)
from edgeflare.survey.gates.survey_gate import Gate, GatedInputs, parse_gate, require_decidable
from edgeflare.survey.items.survey_facts import UNCHANGED, Cell, Sample, SurveyFacts
from edgeflare.survey.presentation.survey_page import survey_page
from edgeflare.survey.presentation.survey_words import next_step
from edgeflare.survey.sampling_design import SamplingDesign, SamplingRounds

CELLS = (Cell(UNCHANGED, 0), Cell("fog", 1), Cell("fog", 3), Cell("snow", 1))
SETS = {"weather": frozenset({"fog", "snow"})}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rate<0.01", ("rate", 0.01, None, None, None)),
        ("rate < 1%", ("rate", 0.01, None, None, None)),
        ("rate < 1 %", ("rate", 0.01, None, None, None)),
        ("rate<0.07%", ("rate", 0.0007, None, None, None)),
        ("accuracy-drop<0.005 under noise", ("accuracy-drop", 0.005, "noise", None, None)),
        ("rate<2 % under fog at severity 3", ("rate", 0.02, "fog", 3, None)),
        ("kernel-rate<1e-3 for group left hand", ("kernel-rate", 1e-3, None, None, "left hand")),
    ],
)
def test_a_gate_is_read(text: str, says: tuple[Any, ...]) -> None:
    measure, limit, condition, severity, group = says
    assert parse_gate(text) == Gate(text, measure, limit, condition, severity, group)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rate", "expected a measure, < and a number"),
        ("rate>0.1", "the sign is <; expected a measure, < and a number"),
        ("rate<=0.1", "the sign is <; "),
        ("rate=1%", "the sign is <; "),
        ("rate≤0.1", "the sign is <; "),
        ("rate<0,01", "a limit has a point and no comma"),
        ("rate<1,5 %", "a limit has a point and no comma"),
        ("rate<0.1 at severity 3 under fog", "in this order: under CONDITION, at severity N, for"),
        ("rate<0.1 at 3", "a severity is named as in 'at severity 3'"),
        ("rate<0.1 for old", "a group is named as in 'for group NAME'"),
        ("Rate<0.1", "in small letters"),
        ("rate<fast", "'rate<fast': expected a measure, < and a number"),
        ("rat<0.1", "did you mean rate?"),
        ("rate<0", "above 0 and below 1"),
        ("rate<1.5", "above 0 and below 1"),
        ("rate<0.1 at severity 0", "from 1 to 5"),
        (f"rate<0.1 at severity {'1' * 5000}", "expected a measure"),  # of which Python makes none
        ("rate<1e-", "expected a measure, < and a number"),
    ],
)
def test_what_is_no_gate_is_refused_in_a_line(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as refused:
        parse_gate(text)
    assert "\n" not in str(refused.value)


UNLABELLED = GatedInputs(
    has_original=True,
    labelled=np.zeros(2, dtype=bool),
    groups=np.full(2, -1),
    group_names=(),
    conditions=frozenset({"fog", "frost", "weather"}),
)
HALF = np.asarray([True, False])
OF_SIDES = replace(UNLABELLED, labelled=HALF, groups=np.arange(2), group_names=("left", "right"))


@pytest.mark.parametrize(
    ("text", "inputs", "said"),
    [
        ("accuracy-drop<0.1", UNLABELLED, "no input has a label"),
        ("rate<0.1 under foggy", UNLABELLED, "did you mean fog?"),
        ("rate<0.1 under foggy", UNLABELLED, "there are fog, snow, unchanged, weather; --condit"),
        ("rate<0.1 under frost", UNLABELLED, "'frost' is not surveyed: add frost to --conditions$"),
        ("rate<0.1 for group a", UNLABELLED, "--groups"),
        ("rate<0.1 under snow at severity 3", UNLABELLED, "severity 3 is not surveyed"),
        ("rate<0.1 for group lef", OF_SIDES, "did you mean left"),
        ("accuracy-drop<0.1 for group left", OF_SIDES, None),
        ("accuracy-drop<0.1 for group right", OF_SIDES, "no input of the group 'right' has a labe"),
        ("accuracy-drop<0.1", replace(OF_SIDES, has_original=False), "the pair has none"),
        (
            "accuracy-drop<0.1",
            replace(UNLABELLED, classes=False),
            "no input has a target: .* an array `targets`",
        ),
        ("accuracy-drop<0.1", replace(UNLABELLED, classes=False, labelled=HALF), None),
    ],
)
def test_a_gate_about_what_is_not_surveyed_is_refused(
    text: str, inputs: GatedInputs, said: str | None
) -> None:
    if said is None:
        require_decidable(parse_gate(text), CELLS, SETS, inputs)
    else:
        with pytest.raises(UserError, match=said):
            require_decidable(parse_gate(text), CELLS, SETS, inputs)


@pytest.mark.parametrize(
    ("text", "cells", "inputs"),
    [
        ("rate<0.1", [1, 2, 3], [0, 1, 2, 3]),
        ("rate<0.1 under weather", [1, 2, 3], [0, 1, 2, 3]),
        ("rate<0.1 under fog for group b", [1, 2], [1, 2]),
        ("rate<0.1 at severity 1", [1, 3], [0, 1, 2, 3]),
        ("rate<0.1 under unchanged", [0], [0, 1, 2, 3]),
    ],
)
def test_a_gate_is_about_the_items_of_its_cells_and_its_group(
    text: str, cells: list[int], inputs: list[int]
) -> None:
    groups = np.tile(np.asarray([0, 1, 1, 0]), 4)
    facts = facts_of(CELLS, inputs=4, groups=groups, group_names=("a", "b"))
    of = parse_gate(text).items(facts, SETS)
    assert np.unique(facts.cell[of]).tolist() == cells
    assert np.unique(facts.input[of]).tolist() == inputs
    assert of.sum() == len(cells) * len(inputs)


ITEMS = 4000
OF_THE_DEVICE = ("deviates", "kernel", "device_right", "failed")


def outcome_of(text: str, count: int = ITEMS, **given: Any) -> GateOutcome:
    """Judge a gate where so many items of two cells were asked, drawn at random."""
    no = np.zeros(ITEMS, dtype=bool)
    rng = np.random.default_rng(2)
    design = SamplingDesign(np.random.default_rng(1).random(ITEMS), no, no, rng)
    items = design.draw(count)
    design.tell(items, no[items])
    asked = no.copy()
    asked[items] = True
    seen = {name: one & asked if name in OF_THE_DEVICE else one for name, one in given.items()}
    facts = facts_of(CELLS[:2], ITEMS // 2, asked=asked, **seen)
    return gate_outcome(parse_gate(text), facts, design, {}, 0.95)


@pytest.mark.parametrize(("rate", "state"), [(0.0, "pass"), (0.2, "fail"), (0.05, "open")])
def test_a_gate_is_held_not_held_or_undecided(rate: float, state: str) -> None:
    deviates = np.random.default_rng(3).random(ITEMS) < rate
    found = outcome_of("rate<0.05", 700, deviates=deviates, kernel=deviates)
    assert found.state == state
    assert found.items == ITEMS // 2
    assert found.low <= found.value <= found.high


@pytest.mark.parametrize(
    ("limit", "state"), [("0.0101", "pass"), ("0.01", "fail"), ("0.0099", "fail")]
)
def test_a_gate_is_decided_exactly_where_all_were_asked(limit: str, state: str) -> None:
    deviates = np.arange(ITEMS) % 100 == 0
    assert outcome_of(f"rate<{limit}", deviates=deviates, kernel=deviates).state == state


def test_an_accuracy_drop_is_that_of_the_device_against_the_original() -> None:
    right = np.random.default_rng(4).random(ITEMS) < 0.8
    device_right = right & (np.random.default_rng(5).random(ITEMS) < 0.9)
    found = outcome_of(
        "accuracy-drop<0.1",
        labelled=np.ones(ITEMS, dtype=bool),
        original_right=right,
        twin_right=right,
        device_right=device_right,
    )
    fog = slice(ITEMS // 2, None)
    assert found.value == pytest.approx(right[fog].mean() - device_right[fog].mean())
    assert found.state == "pass"


@pytest.mark.parametrize(("limit", "state"), [("0.0101", "pass"), ("0.01", "fail")])
def test_a_drop_is_decided_exactly_where_all_were_asked(limit: str, state: str) -> None:
    """Of 100 the device is wrong about three and the original about two, and .03 - .02 < .01."""
    place = np.arange(ITEMS) % 100
    found = outcome_of(
        f"accuracy-drop<{limit}",
        labelled=np.ones(ITEMS, dtype=bool),
        original_right=place >= 2,
        twin_right=place >= 2,
        device_right=place >= 3,
    )
    assert found.state == state


def test_without_an_original_a_rate_is_that_of_kernels() -> None:
    kernel = np.arange(ITEMS) % 10 == 0
    assert outcome_of("rate<0.5", kernel=kernel, has_original=False).value == 0.1


def test_a_gate_about_no_items_is_undecided() -> None:
    assert outcome_of("accuracy-drop<0.1").state == "open"


def test_a_gate_says_how_high_the_rate_in_the_field_may_be() -> None:
    found = outcome_of("rate<0.1")
    assert found.high == 0.0
    assert found.field_high == pytest.approx(1.96**2 / (ITEMS // 2 + 1.96**2), rel=0.01)


@pytest.fixture(scope="module")
def calm() -> SurveyFacts:
    """Facts of a device that never deviates."""
    facts = constructed_facts(inputs=150)
    names = ("compression", "compression_tied", "deviates", "deviates_tied", "kernel", "failed")
    changes: dict[str, Any] = dict.fromkeys(names, np.zeros(facts.items, bool))
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
    assert (outcome.state, outcome.asked <= 10) == ("open", True)


@pytest.mark.parametrize(
    ("again", "said"),
    [("rate<0.01", "'rate<0.01': is given twice: leave"), ("rate < 1%", "before as 'rate<0.01'")],
)
def test_a_gate_is_given_once(again: str, said: str) -> None:
    gates = ("rate<0.01", "rate<0.02", "rate<0.01 under fog", "kernel-rate<0.01")
    require_each_once([parse_gate(one) for one in gates])
    with pytest.raises(UserError, match=said):
        require_each_once([parse_gate(one) for one in (*gates, again)])


ASKED = "of which the device was asked about"


@pytest.mark.parametrize(
    ("text", "figures", "words"),
    [
        (
            "rate<0.01 under fog",  # which does not pool
            (0.0, 0.0, 0.3, None, 300, 21),
            f"0.00 % (0.00–30.00) of 300 items, {ASKED} 21, by their answers alone",
        ),
        (
            "rate<0.3 under fog",
            (0.0, 0.0, 0.3, None, 21, 21),
            f"0.00 % (0.00–30.00) of 21 items, {ASKED} 21",
        ),
        (
            "rate<0.0001",
            (2e-5, 1e-6, 0.00004, 0.0002, 90_000, 3_000),
            f"0.0020 % (0.0001–0.0040) of 90,000 items, {ASKED} 3,000; in the field they come from "
            "it may be up to 0.020 %",
        ),
        (
            "rate<0.0001",
            (2e-5, 1e-6, 0.00004, 0.00005, 90_000, 3_000),
            f"0.0020 % (0.0001–0.0040) of 90,000 items, {ASKED} 3,000",
        ),
        (
            "accuracy-drop<2%",
            (0.01, -0.02, 0.03, None, 1, 1),
            f"+1.00 (-2.00 to 3.00) points of 1 item, {ASKED} 1",
        ),
    ],
)
def test_an_outcome_says_its_figures(text: str, figures: tuple[Any, ...], words: str) -> None:
    outcome = GateOutcome(parse_gate(text), "pass", *figures)
    said = described_outcome(outcome, {}, {})
    assert said.sentence == words
    assert (said.gate, said.state, said.value) == (text, "pass", figures[0])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rate<0.1", ("rate", 0.1, None, None, None, None)),
        ("rate<0.1 under fog", ("rate", 0.1, "fog", ("fog",), None, None)),
        (
            "accuracy-drop<2% under weather at severity 3 for group seen under dark",
            ("accuracy-drop", 0.02, "weather", ("dark", "fog"), 3, "seen under dark"),
        ),
    ],
)
def test_an_outcome_says_what_it_is_about(text: str, says: tuple[Any, ...]) -> None:
    outcome = GateOutcome(parse_gate(text), "open", 0.0, 0.0, 0.1, None, 60, 10)
    said = described_outcome(outcome, {"weather": frozenset({"fog", "dark"})}, {})
    keys = ("measure", "limit", "condition", "conditions", "severity", "group")
    assert tuple(getattr(said, key) for key in keys) == says


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
    """A condition under a name of the user's own is none of what is left out."""
    gate, whole = parse_gate("rate<0.1 under weather"), parse_gate("rate<0.1 under noise")
    chosen = chosen_conditions("image", "fog,noise", (1,))
    left_out = conditions_left_out("image", (gate, whole, parse_gate("rate<0.1")), chosen)
    fog, *others = chosen_conditions("image", "weather", (1,))
    assert left_out.keys() == {"weather"}
    assert set(left_out["weather"]) == {one.name for one in (fog, *others)} - {"fog"}
    outcome = GateOutcome(gate, "pass", 0.0, 0.0, 0.1, None, 60, 10)
    assert described_outcome(outcome, {}, left_out).left_out == left_out["weather"]
    assert described_outcome(replace(outcome, gate=whole), {}, left_out).left_out == ()
    assert conditions_left_out("image", (gate,), (replace(fog, name="mist"), *others)) == {}


PART = changed(
    gate_entry("rate<0.1 under weather at severity 3", "pass", "it is", ["fog", "snow"]),
    left_out=("frost",),
)


def test_every_report_says_that_only_a_part_of_a_set_is_surveyed() -> None:
    whole = changed(PART, left_out=())
    assert PART.name == "rate<0.1 under weather at severity 3 (of weather only fog, snow)"
    assert whole.name == PART.gate
    for gate, part in ((PART, True), (whole, False)):
        document = constructed_document(gates=(gate,))
        (check,), case = survey_page(document).checks, survey_suite(document).cases[0]
        for said in (check.name, case.name):
            assert ("(of weather only fog, snow)" in said) == part


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        ("device-queries", "--out RUN --resume and a larger --device-queries goes on"),
        ("time-limit", "--out RUN --resume and a longer --time-limit goes on"),
        ("precision", "--out RUN --resume and a smaller --precision goes on"),
        ("interrupt", "--out RUN --resume goes on"),
    ],
)
def test_an_undecided_gate_says_what_to_type(ended: str, said: str) -> None:
    gate = gate_entry("rate<0.1", "open", "it is open")
    document = constructed_document(gates=(gate,), stopped_by=ended)
    assert next_step(document, gate).endswith(f"the same command with {said}")
    (check,) = survey_page(document).checks
    assert said in check.words
    assert next_step(document, changed(gate, state="fail")) == ""
