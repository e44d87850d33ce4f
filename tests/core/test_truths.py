"""What is right for seeds: labels and targets, kept in a journal, and refused where they lack."""

from __future__ import annotations

import json

import numpy as np
import pytest

from edgeflare.core.answer import Answer
from edgeflare.core.joint_answer import joint_truth
from edgeflare.core.tensor import Tensor
from edgeflare.core.truths import KeptTargets, Truths, is_right, truth_distance
from edgeflare.errors import UserError
from edgeflare.tasks.classification import ClassDecoder
from edgeflare.tasks.heads_decoder import HeadsDecoder

DECODER = ClassDecoder(Tensor("scores", (1, 3), "float32"), "logits")


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
    heads = HeadsDecoder([ClassDecoder(one, "logits", outputs) for one in outputs])
    targets = np.array([[1, 2], [0, -1], [0, 0]])
    assert Truths(heads, None, targets).decisions().tolist() == [5, -1, 0]
    assert Truths(DECODER, [2, 7], None).decisions().tolist() == [2, -1]


def test_what_is_missing_is_named() -> None:
    with pytest.raises(UserError, match=r"it counts, and no seed has a label from 0 to 2: .*`labe"):
        Truths(DECODER, [7], None).require("it counts")
    Truths(DECODER, [1], None).require("it counts")
    with pytest.raises(UserError, match="its task reads labels instead"):
        DECODER.target(np.float32(1))
