from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.arm import Arm
from edgeflare.core.goal import Goal
from edgeflare.core.joint_answer import (
    JointAnswer,
    in_runs,
    join_decisions,
    joint_answer,
    split_decision,
)
from edgeflare.core.outcome import Outcome
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.tasks.classification import ClassDecoder

CHOICES = (3, 2, 4)
rows = st.tuples(
    *(arrays(np.float32, (n,), elements=st.sampled_from([0, 1, 2, 3])) for n in CHOICES)
)


def parts(row: tuple[NDArray[np.float32], ...]) -> list[Answer]:
    return [
        next(
            ClassDecoder(Tensor("out", (1, len(one)), "float32"), "logits").read(
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


@given(rows, rows)
def test_a_joint_answer_differs_where_a_part_does(
    first: tuple[NDArray[np.float32], ...], second: tuple[NDArray[np.float32], ...]
) -> None:
    mine, theirs = parts(first), parts(second)
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


@given(rows, rows, rows)
def test_a_departure_is_that_of_the_parts_that_differ(
    first: tuple[NDArray[np.float32], ...],
    second: tuple[NDArray[np.float32], ...],
    third: tuple[NDArray[np.float32], ...],
) -> None:
    """From the first towards the second; the third lies anywhere."""
    home, other, any_one = (joint_answer(parts(row)) for row in (first, second, third))
    assert home.departure(home, other) == 0.0
    if home.differs(other):
        assert other.departure(home, other) >= 0.0
        apart = [
            one.departure(at, to)
            for one, at, to in zip(*map(parts, (third, first, second)), strict=True)
            if at.differs(to)
        ]
        assert any_one.departure(home, other) == pytest.approx(sum(apart))


@given(rows)
def test_scores_and_margins_are_those_of_the_joint_decision(
    row: tuple[NDArray[np.float32], ...],
) -> None:
    answer = joint_answer(parts(row))
    assert answer.probabilities.sum() == pytest.approx(1.0)
    assert answer.decision is not None
    assert answer.scores[answer.decision] == answer.scores.max()
    assert answer.margin(answer) == min(map(score_lead, parts(row)))
    assert (answer.margin(answer) == 0.0) == answer.tied


def score_lead(answer: Answer) -> float:
    second, first = np.sort(answer.scores)[-2:]
    return float(first - second)


def test_one_part_is_no_joint_answer_and_a_failed_part_fails_all() -> None:
    whole = parts((np.array([1, 2], np.float32), np.array([3, 4], np.float32)))
    assert joint_answer(whole[:1]) is whole[0]
    failed = Answer(None, False, np.zeros(2), np.zeros(2), "crash")
    answer = joint_answer([whole[0], failed])
    assert (answer.decision, answer.failure) == (None, "crash")
    other = joint_answer(whole)
    assert answer.differs(other)
    assert other.strength_against(answer) is None


def test_many_parts_have_a_decision_and_no_scores() -> None:
    one = parts((np.array([0, 9], np.float32),)) * 49
    other = [*one[:48], *parts((np.array([9, 0], np.float32),))]
    answer, deviating = joint_answer(one), joint_answer(other)
    assert isinstance(answer, JointAnswer)
    assert answer.decision == 2**49 - 1
    assert not answer.scores.size
    assert answer.differs(deviating)
    assert deviating.margin(answer) == -9.0
    assert answer.margin(answer) == 9.0


def test_decisions_that_repeat_are_written_once() -> None:
    assert in_runs(["3", "3", "7"]) == "3×2 7"
