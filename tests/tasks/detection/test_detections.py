"""The mean average precision of objects."""

from __future__ import annotations

import numpy as np
import pytest

from detectors import Row, answer_of, objects_decoder
from edgeflare.core.answer import Answer
from edgeflare.tasks.detection.detection_answer import DetectionAnswer

DECODER = objects_decoder()

A, B, C = (0.1, 0.1, 0.3, 0.3), (0.6, 0.6, 0.9, 0.9), (0.1, 0.6, 0.3, 0.9)


def row(box: tuple[float, ...], score: float, label: int = 0) -> Row:
    return (box[0], box[1], box[2], box[3], score, float(label))


def truth(*boxes: tuple[float, ...], label: int = 0) -> Answer:
    found = DECODER.target(np.array([(*one, label) for one in boxes]).reshape(-1, 5))
    assert found is not None
    return found


def pooled(*pictures: tuple[Answer, Answer]) -> float | None:
    answers, truths = zip(*pictures, strict=True)
    return DetectionAnswer.pooled(answers, truths)


def test_it_is_the_area_under_precision_against_recall() -> None:
    # By falling score right, wrong, right, of three objects: 1 and 2/3 at recalls 1/3 and 2/3.
    answer = answer_of(DECODER, row(A, 0.9), row((0.4, 0.4, 0.5, 0.5), 0.8), row(B, 0.7))
    assert pooled((answer, truth(A, B, C))) == pytest.approx((1 + 2 / 3) / 3)
    # Where precision rises with recall, the highest counts: 2/3 at recall 1/2 too, not 1/2.
    rising = answer_of(DECODER, row(C, 0.9), row(A, 0.8), row(B, 0.7))
    assert pooled((rising, truth(A, B))) == pytest.approx(2 / 3)


def test_candidates_below_the_threshold_count() -> None:
    answer = answer_of(DECODER, row(A, 0.9), row(B, 0.2))
    assert pooled((answer, truth(A, B))) == 1.0


def test_an_object_is_found_once_and_by_its_own_class() -> None:
    twice = answer_of(DECODER, row(A, 0.8), row(A, 0.9), row(B, 0.7))
    assert pooled((twice, truth(A, B))) == pytest.approx(1 / 2 + (2 / 3) / 2)
    other = answer_of(DECODER, row(A, 0.9), row(B, 0.9, 1))
    assert pooled((other, truth(A)), (other, truth(A, label=1))) == pytest.approx(0.25)


def test_pictures_share_one_order_of_scores() -> None:
    wrong = answer_of(DECODER, row(A, 0.9)), truth()
    right = answer_of(DECODER, row(A, 0.6)), truth(A)
    assert pooled(wrong, right) == pooled(right, wrong) == 0.5
    same = answer_of(DECODER, row(A, 0.9)), truth(A)
    assert pooled(wrong, same) == pooled(same, wrong) == 0.5
    assert pooled(right) == 1.0


def test_without_objects_it_is_not_defined() -> None:
    assert pooled((answer_of(DECODER, row(A, 0.9)), truth())) is None
    assert pooled((answer_of(DECODER), truth(A))) == 0.0
