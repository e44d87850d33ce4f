"""What a device answers, beside what it answered before to the same input."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflare.core.answer import Answer, Failure
from edgeflare.core.query import Arm, EvaluatedQuery, Outcome, Repetition

NONE = np.zeros(2)


def answered(raw: bytes, decision: int) -> EvaluatedQuery:
    return EvaluatedQuery(
        Outcome({Arm.DEVICE: Answer(decision, False, NONE, NONE)}, {}), {Arm.DEVICE: raw}, 0.0
    )


def failed(failure: Failure) -> EvaluatedQuery:
    answer = Answer(None, False, NONE, NONE, failure)
    return EvaluatedQuery(Outcome({Arm.DEVICE: answer}, {}), {Arm.DEVICE: b"\0\0"}, 0.0)


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [
        (answered(b"\0\1", 1), answered(b"\0\1", 1), "same"),
        (answered(b"\0\2", 1), answered(b"\0\1", 1), "varied"),
        (answered(b"\1\0", 0), answered(b"\0\1", 1), "changed"),
        (failed("crash"), failed("crash"), "same"),
        # The row that is kept of a failure is what a model may give, too.
        (failed("crash"), answered(b"\0\0", 0), "changed"),
        (failed("crash"), failed("hang"), "changed"),
    ],
)
def test_an_answer_is_the_same_varied_or_changed(
    now: EvaluatedQuery, before: EvaluatedQuery, expected: Repetition
) -> None:
    assert now.repeated(before) == expected
