"""Gates: when they pass, fail or stay open."""

from __future__ import annotations

from pathlib import Path

import pytest

from checked_figures import (
    DEVICE,
    HARM,
    changes,
    decisions,
    fault,
    field_figures,
    figures,
    file_figures,
    kernels,
    layer_figures,
)
from edgeflare.core.query import Arm
from edgeflare.errors import UserError
from edgeflare.release.figures.check_figures import CheckFigures
from edgeflare.release.figures.decisions import ClassLoss
from edgeflare.release.gates import LIMITS, CheckGate, judged_gates, read_limits
from edgeflare.release.harm import counted_faults


def judged(known: CheckFigures, name: str, *given: str) -> CheckGate:
    (found,) = [one for one in judged_gates(known, read_limits(given)) if one.name == name]
    return found


def test_a_gate_is_open_where_its_interval_holds_the_limit() -> None:
    one = decisions(changes=changes(2, harmed=2, helped=1))
    seen = judged(figures(decisions=one), "accuracy-drop")
    assert (seen.state, seen.within) == ("open", True)
    assert seen.inputs_to_decide is not None
    assert seen.inputs_to_decide > 300
    few = decisions(changes=changes(8, harmed=6, helped=2))
    seen = judged(figures(decisions=few), "accuracy-drop")
    assert (seen.state, seen.within) == ("open", False)
    assert judged(figures(decisions=HARM), "accuracy-drop").state == "fail"
    assert judged(figures(decisions=one), "accuracy-drop", "accuracy-drop<0.05").state == "pass"


def test_one_input_of_few_lies_within_a_limit_of_less_than_one() -> None:
    def within(harmed: int, inputs: int) -> tuple[bool, str]:
        known = decisions(
            inputs=inputs,
            labelled=inputs,
            right={Arm.ORIGINAL: 60, Arm.TWIN: 60, Arm.DEVICE: 60 - harmed},
            changes=changes(harmed, harmed=harmed, inputs=inputs),
        )
        gate = judged(figures(decisions=known), "accuracy-drop")
        return gate.within, gate.allowed

    assert [within(1, 64), within(2, 64), within(3, 300), within(4, 300)] == [
        *((True, "1 of 64"), (False, ""), (True, ""), (False, ""))
    ]


def test_a_limit_of_whole_inputs_is_no_more_by_rounding() -> None:
    """As floats 0.07 * 100 is more than 7."""
    known = decisions(
        inputs=100,
        labelled=100,
        right={Arm.ORIGINAL: 60, Arm.TWIN: 60, Arm.DEVICE: 52},
        changes=changes(8, harmed=8, inputs=100),
    )
    found = judged(figures(decisions=known), "accuracy-drop", "accuracy-drop<0.07")
    assert (found.state, found.within) == ("open", False)


def test_conditions_that_the_original_does_not_bear_decide_nothing() -> None:
    ruined = field_figures()
    assert judged(figures(field=ruined), "field-loss").state == "not-checked"


def test_a_share_of_right_decisions_is_one_of_the_labelled_inputs() -> None:
    """Of 300 inputs 60 are labelled, and 6 of these are lost: 10 %."""
    known = decisions(
        labelled=60,
        right={Arm.ORIGINAL: 54, Arm.TWIN: 54, Arm.DEVICE: 48},
        changes=changes(6, harmed=6),
    )
    drop = judged(figures(decisions=known), "accuracy-drop").seen
    harm = judged(figures(decisions=known), "net-harm").seen
    assert drop is not None
    assert harm is not None
    assert (drop.value, harm.value) == (0.1, 0.1)


def test_ties_are_no_changes_by_kernels() -> None:
    tied = figures(kernels=kernels(changes=changes(40, by_tie=40)))
    assert judged(tied, "kernel-changes").state == "open"
    strict = figures(kernels=kernels(changes=changes(40)))
    found = judged(strict, "kernel-changes")
    assert (found.state, found.device) == ("fail", DEVICE)


def test_a_failure_of_the_original_is_none_of_the_device() -> None:
    assert judged(
        figures(decisions=decisions(failed={Arm.ORIGINAL: {"nan": 3}})), "failures"
    ).state == ("pass")
    failed = decisions(failed={Arm.DEVICE: {"crash": 1}})
    assert judged(figures(decisions=failed), "failures").state == "fail"


def test_a_class_is_lost_beyond_five_points() -> None:
    lost = ClassLoss(name="Shirt", inputs=21, left=21, came=0, p_corrected=1e-5)
    found = judged(figures(decisions=decisions(losses=(lost,))), "class-loss")
    assert found.state == "fail"
    assert "Shirt is lost on 21 of 21" in found.sentence
    slight = ClassLoss(name="Shirt", inputs=1000, left=30, came=1, p_corrected=1e-4)
    assert judged(figures(decisions=decisions(losses=(slight,))), "class-loss").state == "pass"


def test_without_labels_nobody_knows_the_accuracy() -> None:
    known = decisions(labelled=0, right={})
    found = judged(figures(decisions=known), "accuracy-drop")
    assert (found.state, found.sentence) == ("not-checked", "no input has a label")
    alone = decisions(right={Arm.TWIN: 1, Arm.DEVICE: 1}, by_file=None)
    assert judged(figures(decisions=alone), "net-harm").sentence == "there is no original"


class TestFaults:
    """Faults of the file count where they show."""

    def test_a_coarse_layer_counts_where_the_file_does_harm(self) -> None:
        coarse = layer_figures(fault("coarse"))
        assert not counted_faults(figures(layers=coarse))
        assert judged(figures(layers=coarse), "faults").state == "pass"
        known = figures(layers=coarse, decisions=HARM)
        assert counted_faults(known) == [fault("coarse")]
        assert judged(known, "faults").state == "fail"

    def test_an_unread_input_counts_in_any_case(self) -> None:
        unread = file_figures(fault("unread-input"))
        assert judged(figures(file=unread), "faults").state == "fail"

    def test_harm_that_kernels_do_is_none_of_the_file(self) -> None:
        by_kernels = decisions(
            changes=changes(40, harmed=32),
            losses=(ClassLoss(name="Shirt", inputs=21, left=21, came=0, p_corrected=1e-5),),
        )
        known = figures(decisions=by_kernels, layers=layer_figures(fault("coarse")))
        assert not counted_faults(known)

    def test_without_labels_many_changes_are_harm(self) -> None:
        coarse = layer_figures(fault("coarse"))
        many = decisions(labelled=0, right={}, by_file=changes(30))
        assert counted_faults(figures(layers=coarse, decisions=many))
        few = decisions(labelled=0, right={}, by_file=changes(3))
        assert not counted_faults(figures(layers=coarse, decisions=few))

    def test_other_constants_count_where_decisions_change_for_certain(self) -> None:
        """They may help as many inputs as they harm."""
        other = layer_figures(fault("constants"))
        both_ways = changes(12, harmed=5, helped=5)
        assert counted_faults(figures(layers=other, decisions=decisions(by_file=both_ways)))
        few = decisions(by_file=changes(4, harmed=2, helped=2))
        assert not counted_faults(figures(layers=other, decisions=few))
        coarse = layer_figures(fault("coarse"))
        assert not counted_faults(figures(layers=coarse, decisions=decisions(by_file=both_ways)))

    def test_what_was_not_seen_is_not_checked(self) -> None:
        assert judged(figures(file=None, layers=None), "faults").state == "not-checked"


def test_the_user_limits_take_the_place_of_the_others() -> None:
    limits = read_limits(["accuracy-drop<0.7%", "changed <= .1", "faults < inf"])
    assert limits["accuracy-drop"] == 0.007
    assert limits["changed"] == 0.1
    assert limits["net-harm"] == LIMITS["net-harm"].limit
    assert "faults" not in limits
    assert "changed" not in read_limits([])


def test_limits_of_a_team_count_before_those_of_a_pair_and_the_command_before_both(
    tmp_path: Path,
) -> None:
    team = tmp_path / "team.toml"
    team.write_text("[gates]\naccuracy-drop = 0.03\nnet-harm = 0.03\nchanged = 0.1\n")
    of_pair = {"net-harm": 0.5, "class-loss": 0.5}
    limits = read_limits(["changed<0.2"], of_pair, team)
    assert [limits[name] for name in ("accuracy-drop", "net-harm", "changed", "class-loss")] == [
        *(0.03, 0.03, 0.2, 0.5)
    ]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "has no limits: write [gates] above them"),
        ("accuracy-drop = 0.03", "unknown key accuracy-drop; keys are gates"),
        ("[gates]\naccuracy = 0.1", "there is no gate 'accuracy' (did you mean"),
        ("[gates]\nnet-harm = -1", "net-harm: -1.0 is no number from 0 up"),
    ],
)
def test_a_file_of_a_team_is_refused_in_one_line(tmp_path: Path, written: str, said: str) -> None:
    team = tmp_path / "team.toml"
    team.write_text(written)
    with pytest.raises(UserError) as refused:
        read_limits([], {}, team)
    assert str(refused.value).startswith(str(team))
    assert said in str(refused.value)
    with pytest.raises(UserError, match="cannot be read: No such file"):
        read_limits([], {}, tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("accuracy<0.1", "no gate 'accuracy' (did you mean 'accuracy-drop'?)"),
        ("net-harm", "expected NAME<NUMBER"),
        ("net-harm<-1", "no number from 0 up"),
        ("net-harm<1e", "no number from 0 up"),
        ("accuracy-drop<5", "'5' is more than all: give a share, such as 0.05"),
    ],
)
def test_what_is_no_gate_is_refused(given: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        read_limits([given])
    assert said in str(refused.value)
