"""Gates as users write them."""

from typing import Any

import numpy as np
import pytest

from edgeflare.errors import UserError
from edgeflare.survey.gates.survey_gate import Gate, GatedInputs, parse_gate, require_decidable
from edgeflare.survey.items.survey_facts import UNCHANGED, Cell
from survey_results import facts_of

CELLS = (Cell(UNCHANGED, 0), Cell("fog", 1), Cell("fog", 3), Cell("snow", 1))
SETS = {"weather": frozenset({"fog", "snow"})}


@pytest.mark.parametrize(
    ("text", "gate"),
    [
        ("rate<0.01", Gate("rate<0.01", "rate", 0.01)),
        ("rate < 1%", Gate("rate < 1%", "rate", 0.01)),
        ("rate < 1 %", Gate("rate < 1 %", "rate", 0.01)),
        ("rate<2 % under fog", Gate("rate<2 % under fog", "rate", 0.02, "fog")),
        (
            "accuracy-drop<0.005 under noise",
            Gate("accuracy-drop<0.005 under noise", "accuracy-drop", 0.005, "noise"),
        ),
        (
            "rate<0.02 under fog at severity 3",
            Gate("rate<0.02 under fog at severity 3", "rate", 0.02, "fog", 3),
        ),
        (
            "kernel-rate<1e-3 for group left hand",
            Gate("kernel-rate<1e-3 for group left hand", "kernel-rate", 1e-3, group="left hand"),
        ),
    ],
)
def test_a_gate_is_read(text: str, gate: Gate) -> None:
    assert parse_gate(text) == gate


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
        ("rate<1e-", "expected a measure, < and a number"),
    ],
)
def test_what_is_no_gate_is_refused_in_a_line(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as refused:
        parse_gate(text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("accuracy-drop<0.1", "no input has a label"),
        ("rate<0.1 under foggy", "did you mean fog?"),
        ("rate<0.1 under foggy", "there are fog, snow, unchanged, weather; --conditions says"),
        ("rate<0.1 under frost", "'frost' is not surveyed: add frost to --conditions$"),
        ("rate<0.1 for group a", "--groups"),
        ("rate<0.1 under snow at severity 3", "severity 3 is not surveyed"),
    ],
)
def test_a_gate_about_what_is_not_surveyed_is_refused(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        require_decidable(parse_gate(text), CELLS, SETS, _inputs())


def test_a_gate_about_a_group_that_nobody_is_in_is_refused() -> None:
    with pytest.raises(UserError, match="did you mean left"):
        require_decidable(
            parse_gate("rate<0.1 for group lef"), CELLS, SETS, _inputs(group_names=("left",))
        )


def test_an_accuracy_drop_of_a_group_without_labels_is_refused() -> None:
    inputs = _inputs(
        labelled=np.asarray([True, False]),
        groups=np.asarray([0, 1]),
        group_names=("left", "right"),
    )
    require_decidable(parse_gate("accuracy-drop<0.1 for group left"), CELLS, SETS, inputs)
    with pytest.raises(UserError, match="no input of the group 'right' has a label"):
        require_decidable(parse_gate("accuracy-drop<0.1 for group right"), CELLS, SETS, inputs)


def test_an_accuracy_drop_without_an_original_is_refused() -> None:
    inputs = _inputs(has_original=False, labelled=np.asarray([True, True]))
    with pytest.raises(UserError, match="the pair has none"):
        require_decidable(parse_gate("accuracy-drop<0.1"), CELLS, SETS, inputs)


def test_an_accuracy_drop_of_other_tasks_needs_targets() -> None:
    gate = parse_gate("accuracy-drop<0.1")
    with pytest.raises(UserError, match=r"no input has a target: .* an array `targets`"):
        require_decidable(gate, CELLS, SETS, _inputs(classes=False))
    known = _inputs(classes=False, labelled=np.asarray([True, False]))
    require_decidable(gate, CELLS, SETS, known)


def _inputs(**given: Any) -> GatedInputs:
    plain: dict[str, Any] = {
        "has_original": True,
        "labelled": np.zeros(2, dtype=bool),
        "groups": np.full(2, -1),
        "group_names": (),
        "conditions": frozenset({"fog", "frost", "weather"}),
    }
    return GatedInputs(**{**plain, **given})


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("rate<0.1", [1, 2, 3]),
        ("rate<0.1 under weather", [1, 2, 3]),
        ("rate<0.1 under fog", [1, 2]),
        ("rate<0.1 at severity 1", [1, 3]),
        ("rate<0.1 under unchanged", [0]),
    ],
)
def test_a_gate_is_about_the_items_of_its_cells(text: str, cells: list[int]) -> None:
    facts = facts_of(CELLS, inputs=4)
    of = parse_gate(text).items(facts, SETS)
    assert np.unique(facts.cell[of]).tolist() == cells
    assert of.sum() == 4 * len(cells)


def test_a_gate_is_about_the_inputs_of_its_group() -> None:
    groups = np.tile(np.asarray([0, 1, 1, 0]), 4)
    facts = facts_of(CELLS, inputs=4, groups=groups, group_names=("a", "b"))
    of = parse_gate("rate<0.1 under fog for group b").items(facts, SETS)
    assert np.unique(facts.input[of]).tolist() == [1, 2]
