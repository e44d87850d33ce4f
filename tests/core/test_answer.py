"""Answers that choose one of several: how they are compared."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.core.answer import Answer

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
    assert one.strength_against(other) == other.strength_against(one)
    if not one.differs(other):
        assert one.strength_against(other) == 0.0


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
