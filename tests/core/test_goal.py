from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflare.core.answer import Answer, Failure
from edgeflare.core.goal import Cause, Find, Goal, cause
from edgeflare.core.query import Arm, Outcome

CLASSES = 4


def answer(label: int | None, tied: bool = False, failure: Failure | None = None) -> Answer:
    probabilities = np.zeros(CLASSES)
    if label is not None:
        probabilities[:] = 0.1
        probabilities[label] = 0.7
    return Answer(label, tied, probabilities, probabilities, failure)


def outcome(original: Answer, twin: Answer, device: Answer) -> Outcome:
    return Outcome({Arm.ORIGINAL: original, Arm.TWIN: twin, Arm.DEVICE: device})


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    weights = draw(st.lists(st.floats(0.001, 1.0), min_size=CLASSES, max_size=CLASSES))
    probabilities = np.array(weights) / sum(weights)
    label = int(probabilities.argmax())
    tied = bool((probabilities == probabilities[label]).sum() > 1)
    return Answer(label, tied, probabilities, np.log(probabilities))


@settings(deadline=None)
@given(answers(), answers(), st.booleans(), st.floats(0.0, 1.0))
def test_met_is_what_its_parts_say(first: Answer, second: Answer, ties: bool, least: float) -> None:
    both = outcome(first, second, second)
    value = first.strength_against(second)
    assert value is not None
    expected = (
        first.decision != second.decision
        and value >= least
        and (ties or not (first.tied or second.tied))
    )
    assert (Goal(Find.ANY, ties, least).met(both) == "deviation") == expected
    assert (Goal(Find.COMPRESSION, ties, least).met(both) == "deviation") == expected
    if Goal().tied_deviation(both):
        assert (Goal().met(both), Goal(ties=True).met(both)) == (None, "deviation")
    swapped = outcome(second, first, first)
    assert Goal(ties=ties, min_strength=least).met(swapped) == Goal(
        ties=ties, min_strength=least
    ).met(both)


@settings(deadline=None)
@given(answers(), answers(), st.sampled_from(Find), st.booleans(), st.floats(0.0, 1.0))
def test_on_inputs_as_they_come_every_changed_decision_counts(
    first: Answer, second: Answer, find: Find, ties: bool, least: float
) -> None:
    twin = first if find is Find.KERNEL else second
    goal = Goal(find, ties, least).unmutated
    met = goal.met(outcome(first, twin, second))
    assert (met == "deviation") == (first.decision != second.decision)
    assert goal.compared == Goal(find).compared


def test_compression_needs_the_twin_to_side_with_the_device() -> None:
    assert Goal(Find.COMPRESSION).met(outcome(answer(0), answer(1), answer(1))) == "deviation"
    assert Goal(Find.COMPRESSION).met(outcome(answer(0), answer(0), answer(1))) is None
    assert Goal(Find.COMPRESSION).met(outcome(answer(0), answer(2), answer(1))) is None


def test_kernel_needs_no_original() -> None:
    both = Outcome({Arm.TWIN: answer(0), Arm.DEVICE: answer(1)})
    assert Goal(Find.KERNEL).met(both) == "deviation"
    assert Goal(Find.KERNEL).needed == (Arm.TWIN, Arm.DEVICE)


@pytest.mark.parametrize("failure", ["crash", "hang", "invalid-output"])
@pytest.mark.parametrize("find", list(Find))
def test_a_failing_compared_arm_is_a_finding_of_its_kind(find: Find, failure: Failure) -> None:
    failed = answer(None, failure=failure)
    goal = Goal(find, min_strength=0.9)
    assert goal.met(outcome(answer(0), answer(0), failed)) == failure
    first, _ = goal.compared
    one = {arm: answer(0) for arm in Arm} | {first: failed}
    assert goal.met(Outcome(one)) == failure


def expected_cause(labels: tuple[int | None, ...], third_tied: bool) -> Cause | None:
    f, h, g = labels
    if f == h == g:
        return None
    if third_tied or not any((f == h, f == g, h == g)):
        return "mixed"
    return "compression" if h == g else "kernel"


def test_cause_over_all_labels() -> None:
    for labels in product((0, 1, 2, None), repeat=3):
        for tied_arm in (*Arm, None):
            arms = {
                arm: answer(label, tied=arm is tied_arm)
                for arm, label in zip(Arm, labels, strict=True)
            }
            for find in Find:
                third = Arm.ORIGINAL if find is Find.KERNEL else Arm.TWIN
                assert cause(Outcome(arms), find) == expected_cause(labels, tied_arm is third)


def test_cause_where_an_arm_was_not_asked() -> None:
    arms = {Arm.TWIN: answer(0), Arm.DEVICE: answer(1)}
    assert cause(Outcome(arms)) == "kernel"
    assert cause(Outcome(arms | {Arm.TWIN: answer(1)})) is None
    assert cause(Outcome({Arm.ORIGINAL: answer(0), Arm.DEVICE: answer(1)})) is None


def test_both_kernels_failing_is_the_compressed_models_fault() -> None:
    failed = answer(None, failure="crash")
    assert cause(outcome(answer(0), failed, failed)) == "compression"
    assert cause(outcome(answer(0), answer(0), failed)) == "kernel"
