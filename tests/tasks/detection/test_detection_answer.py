"""Objects that a model detects: how two answers are compared and shown."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detectors import ROWS, Row, answer_of, batch, detector_outputs_of, log_odds, objects_decoder
from edgeflare.core.answer import Answer
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.errors import UserError
from edgeflare.pages.answers.boxes import DetectionView
from edgeflare.tasks.detection.detection_answer import DetectionAnswer
from edgeflare.tasks.detection.detection_task import Detection
from edgeflare.tasks.detection.detections import DetectionRule, detected

DECODER = objects_decoder()

NEAR = (0.1, 0.1, 0.3, 0.3)
FAR = (0.6, 0.6, 0.9, 0.9)
MOVED = (0.2, 0.1, 0.4, 0.3)  # an IoU of a third with NEAR


def row(box: tuple[float, ...], score: float, label: int = 0) -> Row:
    return (box[0], box[1], box[2], box[3], score, float(label))


def kinds(first: Answer, second: Answer) -> tuple[str, str]:
    return first.kind_against(second), second.kind_against(first)


def test_objects_are_partners_whatever_their_order() -> None:
    first = answer_of(DECODER, row(NEAR, 0.9), row(FAR, 0.8))
    second = answer_of(DECODER, row(FAR, 0.95), row(NEAR, 0.6))
    assert not first.differs(second)
    assert first.strength_against(second) == 0.0
    assert first.margin(second) > 0.0


def test_an_object_vanishes_as_strongly_as_both_sides_are_beyond_the_threshold() -> None:
    first = answer_of(DECODER, row(NEAR, 0.9), row(FAR, 0.8))
    second = answer_of(DECODER, row(NEAR, 0.9), row(FAR, 0.35))
    assert first.differs(second)
    assert kinds(first, second) == ("object-vanished", "object-appeared")
    assert first.strength_against(second) == pytest.approx(0.15)
    assert second.strength_against(first) == pytest.approx(0.15)


def test_what_the_other_arm_gives_elsewhere_does_not_count() -> None:
    first = answer_of(DECODER, row(NEAR, 0.9))
    assert first.strength_against(answer_of(DECODER, row(FAR, 0.45))) == pytest.approx(0.4)
    assert first.strength_against(answer_of(DECODER, row(NEAR, 0.45, 1))) == pytest.approx(0.4)


def test_another_class_at_one_place_is_one_difference() -> None:
    first, second = (answer_of(DECODER, row(NEAR, 0.9, label)) for label in (0, 1))
    assert kinds(first, second) == ("other-class", "other-class")
    assert first.strength_against(second) == pytest.approx(0.4)


def test_a_box_that_overlaps_too_little_has_moved() -> None:
    first, second = answer_of(DECODER, row(NEAR, 0.9)), answer_of(DECODER, row(MOVED, 0.8))
    assert kinds(first, second) == ("object-moved", "object-moved")
    assert first.strength_against(second) == pytest.approx(0.5 - 1 / 3)
    lenient = objects_decoder(overlap=0.3)
    assert not answer_of(lenient, row(NEAR, 0.9)).differs(answer_of(lenient, row(MOVED, 0.8)))


def test_of_several_differences_the_strongest_names_the_kind() -> None:
    first = answer_of(DECODER, row(NEAR, 0.6), row(FAR, 0.55, 1))
    second = answer_of(DECODER, row(MOVED, 0.9))
    assert first.kind_against(second) == "object-moved"
    assert first.strength_against(second) == pytest.approx(0.1)


@given(st.integers(-128, 127), st.sampled_from(["logits", "probabilities"]))
def test_a_score_that_equals_the_threshold_is_a_tie(raw: int, scores: str) -> None:
    scale, zero = (0.25, 10) if scores == "logits" else (float(np.float32(1 / 256)), -128)
    tensors = (
        Tensor("boxes", (1, 1, 4), "float32"),
        Tensor("scores", (1, 1, 1), "int8", scale, zero),
    )
    task = Detection(cells=((1, 1),), scores=scores)  # type: ignore[arg-type]
    decoder = task.decoder(detector_outputs_of(*tensors))
    box = np.full((1, 1, 1, 4), 0.2, np.float32)
    (answer,) = decoder.read(batch(tensors, box, np.full((1, 1, 1, 1), raw, np.int8)))
    at = zero if scores == "logits" else 0
    assert answer.tied == (raw == at)
    present = answer_of(DECODER, row((0.6, 0.6, 0.8, 0.8), 0.9))
    assert answer.differs(present) == (raw < at)
    assert (answer.margin(present) == 0.0) == answer.tied


def test_margins_are_logits_of_what_is_nearest_to_changing() -> None:
    home = answer_of(DECODER, row(NEAR, 0.9), row(FAR, 0.8))
    weaker = answer_of(DECODER, row(NEAR, 0.6), row(FAR, 0.8))
    assert weaker.margin(home) == pytest.approx(log_odds(0.6), abs=1e-5)
    gone = answer_of(DECODER, row(NEAR, 0.4), row(FAR, 0.8))
    assert gone.margin(home) == pytest.approx(log_odds(0.4), abs=1e-5)
    second = row((0.1, 0.7, 0.3, 0.9), 0.3)
    more = answer_of(DECODER, row(NEAR, 0.9), row(FAR, 0.9), second)
    assert more.margin(home) == pytest.approx(-log_odds(0.3), abs=1e-5)
    nothing = answer_of(DECODER)
    assert nothing.margin(nothing) > 0.0 > nothing.margin(home)


def test_the_margin_falls_with_a_better_candidate_that_is_no_partner() -> None:
    tensors = Tensor("boxes", (1, 2, 4), "float32"), Tensor("scores", (1, 2, 1), "float32")
    task = Detection(anchors=((0.4, 0.5), (0.5, 0.5)), suppression=0.3)
    decoder = task.decoder(detector_outputs_of(*tensors))
    # Two boxes with an IoU of a third, of which one suppresses the other.
    boxes = np.zeros((3, 1, 2, 4), np.float32)
    boxes[..., 2:] = 0.2
    scores = np.array([[2.0, 0.5], [2.0, 1.9], [2.0, 2.25]], np.float32).reshape(3, 1, 2, 1)
    home, near, jumped = decoder.read(batch(tensors, boxes, scores))
    assert home.margin(home) == pytest.approx(1.5)
    assert near.margin(home) == pytest.approx(0.1)
    assert not near.differs(home)
    assert jumped.margin(home) == pytest.approx(-0.25)
    assert home.kind_against(jumped) == "object-moved"


places = st.sampled_from([NEAR, FAR, MOVED, (0.1, 0.7, 0.3, 0.9)])
detections = st.lists(
    st.builds(row, places, st.floats(0.02, 0.98), st.integers(0, 1)),
    max_size=ROWS,
    unique_by=lambda one: one[:4],  # of two at one place, it does not matter which is matched
)


@given(detections, detections)
def test_laws_of_differences(first: list[Row], second: list[Row]) -> None:
    one, other = answer_of(DECODER, *first), answer_of(DECODER, *second)
    assert not one.differs(one)
    assert one.equals(one)
    assert one.distance(one) == 0.0
    assert one.against_truth(one) == 1.0
    assert one.differs(other) == other.differs(one)
    strength = one.strength_against(other)
    assert strength is not None
    assert strength == pytest.approx(other.strength_against(one))
    assert 0.0 <= strength <= 0.5
    assert one.distance(other) == pytest.approx(other.distance(one))
    assert strength <= one.distance(other) + 0.5
    if not one.differs(other):
        assert strength == 0.0
    assert one.state().shape == other.state().shape
    certain = [one.certainty(k) for k in (2, 3, 4)]
    assert all(a <= b for a, b in pairwise(certain))
    assert one.lead() == certain[0]


apart = st.sampled_from([NEAR, FAR, (0.1, 0.7, 0.3, 0.9), (0.7, 0.1, 0.9, 0.3)])
scattered = st.lists(
    st.builds(row, apart, st.floats(0.02, 0.98)), max_size=4, unique_by=lambda one: one[:4]
)


@given(scattered, scattered)
def test_the_sign_of_the_margin_is_the_decision_where_boxes_are_apart(
    first: list[Row], second: list[Row]
) -> None:
    home, now = answer_of(DECODER, *first), answer_of(DECODER, *second)
    margin = now.margin(home)
    assert margin >= 0.0 or now.differs(home)
    assert margin <= 0.0 or not now.differs(home)


overlapping = st.sampled_from(
    [NEAR, MOVED, FAR, (0.12, 0.1, 0.32, 0.3), (0.15, 0.1, 0.35, 0.3), (0.1, 0.2, 0.3, 0.4)]
)
anywhere = st.lists(
    st.builds(row, overlapping, st.floats(0.02, 0.98), st.integers(0, 1)), max_size=ROWS
)


@pytest.mark.parametrize("suppression", [0.3, 0.6, 1.0])
@given(anywhere, anywhere)
def test_a_margin_above_zero_is_the_decision_of_home(
    suppression: float, first: list[Row], second: list[Row]
) -> None:
    rule = DetectionRule(0.5, 0.5, suppression, 100)
    one, home = (
        DetectionAnswer(
            *(0, False, np.empty(0), np.empty(0), None),
            detected=detected(answer_of(DECODER, *rows).detected.candidates, rule),
        )
        for rows in (first, second)
    )
    margin = one.margin(home)
    assert margin <= 0.0 if one.differs(home) else margin >= 0.0
    assert margin < 0.0 or not one.differs(home)


def test_an_equal_score_of_another_class_is_a_tie_and_no_strength() -> None:
    scores = Tensor("scores", (1, 4, 2), "int8", 0.05, 0)
    regressors = Tensor("regressors", (1, 4, 4), "float32")
    task = Detection(decoding="anchors", cells=((2, 1),), size=1.0)
    decoder = task.decoder(detector_outputs_of(regressors, scores))
    low = np.full((2, 4, 2), -100, np.int8)
    low[0, 0], low[1, 0] = (80, 80), (79, 80)
    boxes = np.full((2, 4, 4), 0.2, np.float32)
    one, other = decoder.read(batch((regressors, scores), boxes, low))
    assert one.kind_against(other) == "other-class"
    assert (one.tied, other.tied) == (True, False)
    assert one.differs_by_tie(other)
    assert one.strength_against(other) == 0.0


def test_a_deviation_hangs_on_ties_where_each_of_its_differences_does() -> None:
    scores = Tensor("scores", (1, 8, 2), "int8", 0.05, 0)
    regressors = Tensor("regressors", (1, 8, 4), "float32")
    task = Detection(decoding="anchors", cells=((2, 2),), size=1.0)
    decoder = task.decoder(detector_outputs_of(regressors, scores))
    low = np.full((3, 8, 2), -100, np.int8)
    low[:, 0] = (80, 80), (79, 80), (79, 80)  # tied on the first arm only
    low[:2, 7] = (80, 0)  # not on the third
    boxes = np.full((3, 8, 4), 0.2, np.float32)
    tied, alike, without = decoder.read(batch((regressors, scores), boxes, low))
    assert tied.differs_by_tie(alike)
    assert alike.differs_by_tie(tied)
    assert not tied.differs_by_tie(without)
    assert not without.differs_by_tie(tied)


def test_what_a_vanished_object_has_left_is_known_among_many_others() -> None:
    scores = Tensor("scores", (1, 100, 1), "float32")
    regressors = Tensor("regressors", (1, 100, 4), "float32")
    task = Detection(decoding="anchors", cells=((10, 1),), size=1.0, scores="probabilities")
    decoder = task.decoder(detector_outputs_of(regressors, scores))
    given = np.full((2, 100, 1), 0.0, np.float32)
    given[:, :70] = 0.9
    given[0, 99], given[1, 99] = 0.9, 0.49
    boxes = np.full((2, 100, 4), 0.0, np.float32)
    boxes[:, :, 2:] = 0.08
    one, other = decoder.read(batch((regressors, scores), boxes, given))
    assert one.strength_against(other) == pytest.approx(0.01)
    assert other.margin(one) == pytest.approx(log_odds(0.49), abs=1e-3)


def test_a_deviation_hangs_on_ties_where_it_vanishes_without_them() -> None:
    tied = row(FAR, 0.5)
    alone, beside = answer_of(DECODER, tied), answer_of(DECODER, row(NEAR, 0.9), tied)
    assert alone.tied
    assert beside.tied
    nothing = answer_of(DECODER)
    assert alone.differs(nothing)
    assert alone.differs_by_tie(nothing)
    assert nothing.differs_by_tie(alone)
    assert beside.differs(alone)
    assert not beside.differs_by_tie(alone)
    two = answer_of(DECODER, row(NEAR, 0.9), row(FAR, 0.8))
    assert two.differs(answer_of(DECODER, row(NEAR, 0.5)))
    assert not two.differs_by_tie(answer_of(DECODER, row(NEAR, 0.5)))


def test_each_arm_is_held_to_its_own_threshold() -> None:
    strict, loose = objects_decoder(threshold=0.5), objects_decoder(threshold=0.4)
    one, other = (answer_of(decoder, row(NEAR, 0.45)) for decoder in (strict, loose))
    assert one.kind_against(other) == "object-appeared"
    assert one.strength_against(other) == pytest.approx(0.05)
    assert other.strength_against(one) == pytest.approx(0.05)


@pytest.mark.parametrize("wrong", [row(NEAR, 1.7), row(NEAR, 0.9, 20_000)])
def test_scores_and_classes_that_are_none_are_invalid(wrong: Row) -> None:
    assert answer_of(DECODER, wrong).failure == "invalid-output"


def test_a_failed_arm_differs_by_its_failure_alone() -> None:
    (failed,) = DECODER.read(RawBatch(np.full((1, ROWS, 6), np.nan, np.float32)))
    well = answer_of(DECODER, row(NEAR, 0.9))
    assert failed.failure == "invalid-output"
    assert failed.differs(well)
    assert well.differs(failed)
    assert well.strength_against(failed) is None
    assert well.margin(failed) == failed.margin(well) == 0.0
    assert not failed.equals(well)


def test_the_objects_of_a_target_are_right_one_to_one() -> None:
    unused = [np.nan] * 5
    truth = DECODER.target(np.array([[*NEAR, 0], unused, [*FAR, 1]]))
    both = answer_of(DECODER, row(FAR, 0.6, 1), row(NEAR, 0.9))
    one = answer_of(DECODER, row(NEAR, 0.9))
    assert (both.differs(truth), one.differs(truth)) == (False, True)
    assert one.against_truth(truth) == pytest.approx(2 / 3)
    nothing = DECODER.target(np.array([unused]))
    assert (answer_of(DECODER).differs(nothing), one.differs(nothing)) == (False, True)
    assert answer_of(DECODER).against_truth(nothing) == 1.0
    assert one.against_truth(nothing) == 0.0


def test_two_objects_of_a_target_may_overlap() -> None:
    apart = tuple(side + 0.01 for side in NEAR)
    truth = DECODER.target(np.array([[*NEAR, 0], [*apart, 0]]))
    assert len(truth.detected.objects) == 2


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ([[0.1, 0.1, 0.3, 0.3]], r"\(1, 4\), expected numbers \(objects, 5\)"),
        ([[0.3, 0.1, 0.1, 0.3, 0.0]], "ends before it begins"),
        ([[10.0, 10.0, 30.0, 30.0, 0.0]], "divide by its width and height"),
        ([[0.1, 0.1, 0.3, 0.3, 0.5]], "classes are whole numbers"),
    ],
)
def test_a_target_that_is_no_objects_is_refused(target: list[list[float]], said: str) -> None:
    with pytest.raises(UserError, match=said):
        DECODER.target(np.array(target))


FACE = (0.1, 0.1, 0.3, 0.3, 0.9, 0.0)
FAINT = (0.1, 0.1, 0.3, 0.3, 0.4, 0.0)
BIRD = (0.6, 0.6, 0.9, 0.9, 0.75, 1.0)


def test_views_mark_what_differs_among_the_compared_arms() -> None:
    decoder = objects_decoder()
    answers = {
        "original": answer_of(decoder, FACE, BIRD),
        "twin": answer_of(decoder, FACE, BIRD),
        "device": answer_of(decoder, FAINT, BIRD),
    }
    (view,) = decoder.views(answers, ("original", "device"))
    assert isinstance(view, DetectionView)
    shown = {
        arm: [(one.label, one.difference) for one in boxes or ()]
        for arm, boxes in view.boxes.items()
    }
    assert shown == {
        "original": [(0, "object-vanished"), (1, "")],
        "twin": [(0, ""), (1, "")],
        "device": [(1, "")],
    }
    first = (view.boxes["original"] or ())[0]
    assert (first.box, first.score) == ((0.1, 0.1, 0.3, 0.3), 0.9)
    assert [(one.object, one.there) for boxes in view.boxes.values() for one in boxes or ()] == [
        *((0, {"device": 0.4}), (1, {})),
        *((0, {"device": 0.4}), (1, {})),
        (1, {}),
    ]
    (other,) = decoder.views(
        {**answers, "device": answer_of(decoder, BIRD)}, ("original", "device")
    )
    assert [one.there for one in other.boxes["original"] or ()] == [{"device": 0.0}, {}]
    assert (view.threshold, view.overlap, view.classes) == (0.5, 0.5, ())


@given(detections, detections, detections)
def test_objects_that_differ_have_numbers_of_their_own(
    first: list[Row], second: list[Row], third: list[Row]
) -> None:
    """Each number stands once in an arm, and on both compared arms just where nothing differs."""
    rows = {"original": first, "twin": third, "device": second}
    answers = {arm: answer_of(DECODER, *given_rows) for arm, given_rows in rows.items()}
    (view,) = DECODER.views(answers, ("original", "device"))
    assert isinstance(view, DetectionView)
    boxes = {arm: some or () for arm, some in view.boxes.items()}
    numbers = {arm: [one.object for one in some] for arm, some in boxes.items()}
    assert all(len(set(some)) == len(some) for some in numbers.values())
    for arm, other in (("original", "device"), ("device", "original")):
        for one in boxes[arm]:
            assert (
                (one.object in numbers[other]) == (not one.difference) == (other not in one.there)
            )


def test_an_answer_is_described_by_number_classes_and_scores() -> None:
    decoder = objects_decoder()
    several = answer_of(decoder, BIRD, FACE)
    assert decoder.describe_answer(several) == "2 objects: .90, .75"
    assert decoder.describe_answer(several, ("face", "bird")) == "2 objects: face .90, bird .75"
    assert decoder.describe_answer(answer_of(decoder, FACE)) == "1 object: .90"
    assert decoder.describe_answer(answer_of(decoder, FAINT)) == "no object"
