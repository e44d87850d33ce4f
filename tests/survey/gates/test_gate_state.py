"""What becomes of a gate, given what the device said."""

import numpy as np
import pytest

from edgeflare.survey.estimate.sampling_design import SamplingDesign
from edgeflare.survey.gates.gate_state import gate_outcome
from edgeflare.survey.gates.survey_gate import parse_gate
from edgeflare.survey.items.survey_facts import UNCHANGED, Cell, SurveyFacts
from survey_results import facts_of

CELLS = (Cell(UNCHANGED, 0), Cell("fog", 1))
ITEMS = 4000


def _asked(count: int, **given: np.ndarray) -> tuple[SurveyFacts, SamplingDesign]:
    """Ask about so many items, drawn at random; return the facts as they are then."""
    no = np.zeros(ITEMS, dtype=bool)
    design = SamplingDesign(
        np.random.default_rng(1).random(ITEMS), no, no, np.random.default_rng(2)
    )
    items = design.draw(count)
    design.tell(items, no[items])
    asked = no.copy()
    asked[items] = True
    seen = {
        name: values & asked if name in _OF_THE_DEVICE else values for name, values in given.items()
    }
    return facts_of(CELLS, ITEMS // 2, asked=asked, **seen), design


_OF_THE_DEVICE = ("deviates", "kernel", "device_right", "failed")


@pytest.mark.parametrize(("rate", "state"), [(0.0, "held"), (0.2, "not held"), (0.05, "undecided")])
def test_a_gate_is_held_not_held_or_undecided(rate: float, state: str) -> None:
    deviates = np.random.default_rng(3).random(ITEMS) < rate
    facts, design = _asked(700, deviates=deviates, kernel=deviates)
    found = gate_outcome(parse_gate("rate<0.05"), facts, design, {}, 0.95)
    assert found.state == state
    assert found.items == ITEMS // 2
    assert found.low <= found.estimate <= found.high


def test_a_gate_is_decided_exactly_where_all_were_asked() -> None:
    deviates = np.arange(ITEMS) % 100 == 0
    facts, design = _asked(ITEMS, deviates=deviates, kernel=deviates)
    states = {
        text: gate_outcome(parse_gate(text), facts, design, {}, 0.95).state
        for text in ("rate<0.0101", "rate<0.01", "rate<0.0099")
    }
    assert states == {"rate<0.0101": "held", "rate<0.01": "not held", "rate<0.0099": "not held"}


def test_an_accuracy_drop_is_that_of_the_device_against_the_original() -> None:
    labelled = np.ones(ITEMS, dtype=bool)
    original_right = np.random.default_rng(4).random(ITEMS) < 0.8
    device_right = original_right & (np.random.default_rng(5).random(ITEMS) < 0.9)
    facts, design = _asked(
        ITEMS, labelled=labelled, original_right=original_right,
        twin_right=original_right, device_right=device_right,
    )  # fmt: skip
    found = gate_outcome(parse_gate("accuracy-drop<0.1"), facts, design, {}, 0.95)
    fog = facts.cell == 1
    drop = original_right[fog].mean() - device_right[fog].mean()
    assert found.estimate == pytest.approx(drop)
    assert found.state == "held"


def test_without_an_original_a_rate_is_that_of_kernels() -> None:
    kernel = np.arange(ITEMS) % 10 == 0
    facts, design = _asked(ITEMS, kernel=kernel)
    alone = facts_of(CELLS, ITEMS // 2, asked=facts.asked, kernel=facts.kernel, has_original=False)
    assert gate_outcome(parse_gate("rate<0.5"), alone, design, {}, 0.95).estimate == 0.1


def test_a_gate_about_no_items_is_undecided() -> None:
    facts, design = _asked(ITEMS)
    assert (
        gate_outcome(parse_gate("accuracy-drop<0.1"), facts, design, {}, 0.95).state == "undecided"
    )


def test_a_gate_says_how_high_the_rate_in_the_field_may_be() -> None:
    facts, design = _asked(ITEMS)
    found = gate_outcome(parse_gate("rate<0.1"), facts, design, {}, 0.95)
    assert found.high == 0.0
    assert found.field_high == pytest.approx(1.96**2 / (ITEMS // 2 + 1.96**2), rel=0.01)
