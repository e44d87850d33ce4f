"""What the models of a draft are given: fresh values, and the answers of what feeds them."""

from __future__ import annotations

import numpy as np
import pytest

from conforming import an_addition
from drafting import relu, relu_chain
from edgeflare.conform.drafts.draft import Draft
from edgeflare.conform.execution.kernel_arm import ModelAnswer, RunFailure
from edgeflare.conform.graphs.operator_graph import Values
from edgeflare.conform.rounds.posed_draft import ROWS, PosedDraft, posed
from exact_arm import ExactArm

FAILED = ModelAnswer(failure=RunFailure("crash", "SIGSEGV"))


@pytest.fixture
def diamond() -> PosedDraft:
    """Two RELU of one more, and an ADD of int8 that is alone beside them."""
    return posed(Draft((relu((2, 3)), relu((2, 3), 0), relu((2, 3), 0), an_addition())), {})


def _bytes(several: tuple[Values, ...]) -> list[bytes]:
    return [one.tobytes() for one in several]


def test_a_draft_is_given_the_same_values_again(diamond: PosedDraft) -> None:
    again = posed(Draft(tuple(diamond.draft.nodes)), {})
    assert _bytes(again.whole.operands) == _bytes(diamond.whole.operands)
    alone = posed(Draft((an_addition(),)), {})
    # A node has its values wherever it is, and so fails alone as it fails among others.
    assert _bytes(alone.whole.operands) == _bytes(diamond.operands[3])


def test_the_whole_is_given_what_no_operator_feeds(diamond: PosedDraft) -> None:
    whole = diamond.whole
    assert [one.shape for one in whole.operands] == [(ROWS, 2, 3)] * 3
    assert [one.dtype for one in whole.operands] == [np.float32, np.int8, np.int8]
    for at, values in zip(whole.graph.inputs, whole.operands, strict=True):
        assert whole.graph.values[at].shape == values.shape[1:]
        assert whole.graph.values[at].dtype == values.dtype


def test_an_operator_is_given_the_answer_of_the_one_that_feeds_it(diamond: PosedDraft) -> None:
    made = np.full((ROWS, 2, 3), 5, np.float32)
    answers = [ModelAnswer((made,)), ModelAnswer((made + 1,))]
    third = diamond.alone(2, answers)
    assert third is not None
    assert _bytes(third.operands) == [made.tobytes()]
    fourth = diamond.alone(3, answers)
    assert fourth is not None
    assert _bytes(fourth.operands) == _bytes(diamond.operands[3])


@pytest.mark.parametrize("answer", [None, FAILED])
def test_what_an_operator_without_answer_feeds_is_not_run(
    diamond: PosedDraft, answer: ModelAnswer | None
) -> None:
    assert diamond.alone(1, [answer]) is None
    assert diamond.alone(3, [answer]) is not None
    made = ModelAnswer((np.zeros((ROWS, 2, 3), np.float32),))
    assert diamond.results([made, made, answer, made]) is None


def test_the_results_are_those_that_no_operator_reads() -> None:
    one = posed(relu_chain([(2, 3), (2, 3), (4,)]), {})
    arm = ExactArm()
    answers: list[ModelAnswer | None] = []
    for at in range(3):
        model = one.alone(at, answers)
        assert model is not None
        answers += arm.run([model])
    results = one.results(answers)
    assert results is not None
    assert [values.shape for values in results] == [(ROWS, 2, 3), (ROWS, 4)]
    (whole,) = arm.run([one.whole])
    assert _bytes(whole.outputs) == _bytes(results)
