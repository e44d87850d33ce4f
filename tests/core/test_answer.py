"""Answers of one part or several: how they are compared, and what is right."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.goal import Goal
from edgeflare.core.joint_answer import (
    JointAnswer,
    in_runs,
    join_decisions,
    joint_answer,
    joint_truth,
    split_decision,
)
from edgeflare.core.query import Arm, Outcome, same_decisions
from edgeflare.core.seeds import Seeds
from edgeflare.core.task import ModelOutputs
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.core.truths import KeptTargets, Truths, is_right, require_truths, truth_distance
from edgeflare.errors import UserError
from edgeflare.tasks.classification import ClassDecoder, HeadsDecoder
from edgeflare.tasks.frame_pooling import ClipFrames
from edgeflare.tasks.regression import Regression

SCORES = arrays(np.float64, 4, elements=st.integers(-3, 3).map(float))
FAILED = Answer(None, False, np.zeros(4), np.zeros(4), "crash")


def answer(scores: NDArray[np.float64]) -> Answer:
    powers = np.exp(scores)
    tied = int((scores == scores.max()).sum()) > 1
    return Answer(int(scores.argmax()), tied, powers / powers.sum(), scores)


@given(SCORES, SCORES)
def test_answers_differ_both_ways_and_only_then_have_a_strength(
    first: NDArray[np.float64], second: NDArray[np.float64]
) -> None:
    one, other = answer(first), answer(second)
    assert one.differs(other) == other.differs(one)
    strength = one.strength_against(other)
    assert strength == other.strength_against(one)
    assert strength is not None
    assert 0.0 <= strength < 1.0
    assert strength <= min(np.ptp(arm.probabilities) for arm in (one, other))
    if one.decision == other.decision:
        assert strength == 0.0


@given(SCORES, st.integers(0, 3))
def test_a_margin_is_above_zero_for_the_decision_alone(
    scores: NDArray[np.float64], choice: int
) -> None:
    one = answer(scores)
    margin = one.margin(answer(np.eye(4)[choice]))
    assert (margin > 0.0) == (one.decision == choice and not one.tied)
    assert (margin >= 0.0) == (scores[choice] == scores.max())


@given(SCORES)
def test_lead_is_zero_for_ties_alone(scores: NDArray[np.float64]) -> None:
    one = answer(scores)
    assert (one.lead() == 0.0) == one.tied


def test_that_an_arm_failed_is_a_decision_of_its_own() -> None:
    right = answer(np.array([1.0, 0.0, 0.0, 0.0]))
    assert right.differs(FAILED)
    assert not FAILED.differs(FAILED)
    assert right.strength_against(FAILED) is None
    assert FAILED.margin(FAILED) == 0.0


CHOICES = (3, 2, 4)
rows_of_parts = st.tuples(
    *(arrays(np.float32, (n,), elements=st.sampled_from([0, 1, 2, 3])) for n in CHOICES)
)


def parts_of(row: tuple[NDArray[np.float32], ...]) -> list[Answer]:
    return [
        next(
            ClassDecoder((Tensor("out", (1, len(one)), "float32"),), 0, "logits").read(
                RawBatch(one[None])
            )
        )
        for one in row
    ]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.data())
def test_joint_decisions_come_apart_again(choices: list[int], data: st.DataObject) -> None:
    labels = [data.draw(st.integers(0, count - 1)) for count in choices]
    decision = join_decisions(labels, choices)
    assert split_decision(decision, choices) == labels


@given(rows_of_parts, rows_of_parts)
def test_a_joint_answer_differs_where_a_part_does(
    first: tuple[NDArray[np.float32], ...], second: tuple[NDArray[np.float32], ...]
) -> None:
    mine, theirs = parts_of(first), parts_of(second)
    one, other = joint_answer(mine), joint_answer(theirs)
    apart = [(a, b) for a, b in zip(mine, theirs, strict=True) if a.differs(b)]
    assert one.differs(other) == other.differs(one) == bool(apart)
    strength = one.strength_against(other)
    assert strength == other.strength_against(one)
    assert strength == max((a.strength_against(b) or 0.0 for a, b in apart), default=0.0)
    strict = any(not (a.tied or b.tied) for a, b in apart)
    outcome = Outcome({Arm.ORIGINAL: one, Arm.DEVICE: other})
    assert (Goal().met(outcome) == "deviation") == strict
    assert Goal().tied_deviation(outcome) == (bool(apart) and not strict)


@given(rows_of_parts, rows_of_parts, rows_of_parts)
def test_a_departure_is_that_of_the_parts_that_differ(
    first: tuple[NDArray[np.float32], ...],
    second: tuple[NDArray[np.float32], ...],
    third: tuple[NDArray[np.float32], ...],
) -> None:
    """From the first towards the second; the third lies anywhere."""
    home, other, any_one = (joint_answer(parts_of(row)) for row in (first, second, third))
    assert home.departure(home, other) == 0.0
    if home.differs(other):
        assert other.departure(home, other) >= 0.0
        apart = [
            one.departure(at, to)
            for one, at, to in zip(*map(parts_of, (third, first, second)), strict=True)
            if at.differs(to)
        ]
        assert any_one.departure(home, other) == pytest.approx(sum(apart))


@given(rows_of_parts)
def test_scores_and_margins_are_those_of_the_joint_decision(
    row: tuple[NDArray[np.float32], ...],
) -> None:
    answer = joint_answer(parts_of(row))
    assert answer.probabilities.sum() == pytest.approx(1.0)
    assert answer.decision is not None
    assert answer.scores[answer.decision] == answer.scores.max()
    assert answer.margin(answer) == min(map(score_lead, parts_of(row)))
    assert (answer.margin(answer) == 0.0) == answer.tied


def score_lead(answer: Answer) -> float:
    second, first = np.sort(answer.scores)[-2:]
    return float(first - second)


def test_one_part_is_no_joint_answer_and_a_failed_part_fails_all() -> None:
    whole = parts_of((np.array([1, 2], np.float32), np.array([3, 4], np.float32)))
    assert joint_answer(whole[:1]) is whole[0]
    failed = Answer(None, False, np.zeros(2), np.zeros(2), "crash")
    answer = joint_answer([whole[0], failed])
    assert (answer.decision, answer.failure) == (None, "crash")
    other = joint_answer(whole)
    assert answer.differs(other)
    assert other.strength_against(answer) is None


def test_many_parts_have_a_decision_and_no_scores() -> None:
    one = parts_of((np.array([0, 9], np.float32),)) * 49
    other = [*one[:48], *parts_of((np.array([9, 0], np.float32),))]
    answer, deviating = joint_answer(one), joint_answer(other)
    assert isinstance(answer, JointAnswer)
    assert answer.decision == 2**49 - 1
    assert not answer.scores.size
    assert answer.differs(deviating)
    assert deviating.margin(answer) == -9.0
    assert answer.margin(answer) == 9.0


def test_decisions_that_repeat_are_written_once() -> None:
    assert in_runs(["3", "3", "7"]) == "3×2 7"


TENSOR = Tensor("out", (1, 2), "float32")


def classes(*raw: list[float]) -> list[Answer]:
    return list(ClassDecoder((TENSOR,), 0, "logits").read(RawBatch(np.array(raw, np.float32))))


def values(*raw: list[float]) -> list[Answer]:
    model = ModelOutputs("m", (TENSOR,), frozenset(), 0, (), lambda _: RawBatch(np.zeros(0)))
    return list(Regression(tolerance=0.5).decoder(model).read(RawBatch(np.array(raw, np.float32))))


def test_decisions_are_the_same_where_no_arm_decides_differently() -> None:
    a, b, c = classes([0, 1], [0, 2], [3, 2])
    assert same_decisions(Outcome({Arm.DEVICE: a}), Outcome({Arm.DEVICE: b}))
    assert not same_decisions(Outcome({Arm.DEVICE: a}), Outcome({Arm.DEVICE: c}))
    assert not same_decisions(Outcome({Arm.DEVICE: a}), Outcome({Arm.TWIN: a}))


@pytest.mark.parametrize(("change", "same"), [(0.25, True), (0.75, False)])
def test_values_are_the_same_within_the_tolerance(change: float, same: bool) -> None:
    a, b = values([0, 1], [0, 1 + change])
    assert same_decisions(Outcome({Arm.DEVICE: a}), Outcome({Arm.DEVICE: b})) == same


DECODER = ClassDecoder((Tensor("scores", (1, 3), "float32"),), 0, "logits")


def decided(decision: int | None) -> Answer:
    return Answer(decision, False, np.zeros(3), np.zeros(3), "crash" if decision is None else None)


@pytest.mark.parametrize(
    "targets",
    [
        np.array([[0.5, np.nan], [1.0, 2.0]], np.float32),
        np.arange(12, dtype=np.uint8).reshape(2, 2, 3),
        np.array(["four two", "ünd"]),
    ],
)
def test_targets_are_kept_as_they_are(targets: np.ndarray) -> None:
    kept = KeptTargets.of(targets)
    assert kept is not None
    again = KeptTargets.from_json(json.loads(json.dumps(kept.to_json())))
    assert again == kept
    np.testing.assert_array_equal(again.of_seeds([1, 0]), targets[[1, 0]])
    assert again[0].dtype == targets[0].dtype


def test_a_label_that_is_no_class_says_nothing() -> None:
    truths = Truths(DECODER, [2, -1, 3, 0], None)
    assert truths.known().tolist() == [True, False, False, True]
    assert is_right(decided(2), truths[0])
    assert not is_right(decided(1), truths[0])
    assert not is_right(decided(None), truths[0])
    assert not is_right(decided(2), truths[1])
    assert truth_distance(decided(2), truths[0]) is None


def test_a_right_joint_answer_is_right_in_all_parts() -> None:
    truth, near = joint_truth([1, 2, 0, 1], (2, 3, 2, 2)), joint_truth([1, 2, 0, 0], (2, 3, 2, 2))
    assert (is_right(truth, truth), is_right(near, truth)) == (True, False)
    assert truth_distance(near, truth) == 0.75
    assert joint_truth([1, 3], (2, 3)) is None


def test_the_decision_of_a_target_is_that_of_all_its_parts() -> None:
    outputs = tuple(Tensor(name, (1, 3), "float32") for name in "ab")
    heads = HeadsDecoder(tuple(ClassDecoder(outputs, at, "logits") for at in range(len(outputs))))
    targets = np.array([[1, 2], [0, -1], [0, 0]])
    assert Truths(heads, None, targets).decisions().tolist() == [5, -1, 0]
    assert Truths(DECODER, [2, 7], None).decisions().tolist() == [2, -1]


def test_a_label_of_a_clip_is_that_of_every_frame(tmp_path: Path) -> None:
    tensor = Tensor("scores", (40, 1, 3), "float32")
    decoder = ClassDecoder((tensor,), 0, "logits", ClipFrames(40, "any"))
    labelled = Seeds(np.zeros((2, 40)), np.array([2, -1]), ("a", "b"))
    seeds = require_truths(decoder, labelled, tmp_path)
    truths = Truths.of_seeds(decoder, seeds)
    assert truths.known().tolist() == [True, False]
    assert is_right(joint_truth([2] * 40, decoder.parts), truths[0])
    assert truths.decisions().tolist() == [-1, -1]  # of 3 ** 40 decisions none is counted
    with pytest.raises(UserError, match="the label of seed b is 3, and the model has 3 classes"):
        require_truths(decoder, replace(labelled, labels=np.array([2, 3])), tmp_path)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(UserError, match=r"it counts, and no seed has a label from 0 to 2: .*`labe"):
        Truths(DECODER, [7], None).require("it counts")
    Truths(DECODER, [1], None).require("it counts")
    with pytest.raises(UserError, match="its task reads labels instead"):
        DECODER.target(np.float32(1))
