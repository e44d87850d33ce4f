from __future__ import annotations

import numpy as np
import pytest

from edgeflare.core.answer import Answer
from edgeflare.core.task import Decoder, ModelOutputs, Task
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.errors import UserError
from edgeflare.pages.answers.classes import ClassesView
from edgeflare.pages.answers.scores import ThresholdView
from edgeflare.pages.answers.values import RegressionView
from edgeflare.tasks.classification import ClassDecoder, Classification
from edgeflare.tasks.frame_pooling import MOST_SHOWN, ClipFrames
from edgeflare.tasks.regression import Regression
from edgeflare.tasks.threshold import Threshold
from kept_decoders import kept_again

FRAMES = 3
SCORES = Tensor("scores", (FRAMES, 1, 2), "float32")
SCORE = Tensor("score", (FRAMES, 1, 1), "float32")


def decoder(task: Task, tensor: Tensor) -> Decoder:
    batch = RawBatch(np.zeros((2, *tensor.shape), np.float32))
    return task.decoder(
        ModelOutputs("model", (tensor,), frozenset(), FRAMES, (), lambda _seeds: batch)
    )


def answers(task: Task, tensor: Tensor, *clips: list[list[float]]) -> list[Answer]:
    raw = np.array(clips, np.float32).reshape(len(clips), *tensor.shape)
    reader = decoder(task, tensor)
    again = kept_again(task, reader)
    assert [one.decision for one in again.read(RawBatch(raw))] == [
        one.decision for one in reader.read(RawBatch(raw))
    ]
    return list(reader.read(RawBatch(raw)))


# Of these clips the class of the last frame is alike, that of the second is not.
ONE: list[list[float]] = [[0, 1], [0, 3], [0, 1]]
OTHER: list[list[float]] = [[0, 1], [9, 0], [0, 1]]


def test_classification_sums_frames_up() -> None:
    one, other = answers(Classification(outputs="logits"), SCORES, ONE, OTHER)
    assert (one.decision, other.decision) == (1, 1)
    one, other = answers(Classification(outputs="logits", frames="mean"), SCORES, ONE, OTHER)
    assert (one.decision, other.decision) == (1, 0)
    one, other = answers(Classification(outputs="logits", frames="any"), SCORES, ONE, OTHER)
    assert one.differs(other)
    late = Classification(outputs="logits", frames="any", first_frame=2)
    one, other = answers(late, SCORES, ONE, OTHER)
    assert not one.differs(other)


def test_frames_are_described_in_their_order() -> None:
    task = Classification(outputs="logits", frames="any")
    _, other = answers(task, SCORES, ONE, OTHER)
    assert other.decision is not None
    assert decoder(task, SCORES).describe(other.decision) == "1 0 1"
    assert decoder(task, SCORES).choices == 8


# The greatest score of the second clip is above 1, the last one and the mean are not.
LOW: list[list[float]] = [[0.0], [0.5], [0.6]]
HIGH: list[list[float]] = [[0.0], [1.5], [0.6]]


@pytest.mark.parametrize(
    ("frames", "strength"), [("last", 0.0), ("mean", 0.0), ("worst", 0.4), ("any", 0.5)]
)
def test_threshold_sums_frames_up(frames: str, strength: float) -> None:
    task = Threshold(threshold=1.0, spread=1.0, frames=frames)  # type: ignore[arg-type]
    low, high = answers(task, SCORE, LOW, HIGH)
    assert low.differs(high) == (strength > 0.0)
    assert low.strength_against(high) == pytest.approx(strength)


@pytest.mark.parametrize(
    ("frames", "distance"), [("last", 0.0), ("mean", 1 / 3), ("worst", 1.0), ("any", 1.0)]
)
def test_regression_sums_the_distances_of_frames_up(frames: str, distance: float) -> None:
    task = Regression(tolerance=0.5, frames=frames)  # type: ignore[arg-type]
    low, high = answers(task, SCORE, LOW, HIGH)
    assert low.distance(high) == pytest.approx(distance)
    assert low.differs(high) == (distance > 0.5)


def test_rules_and_first_frames_that_do_not_go_are_refused() -> None:
    with pytest.raises(UserError, match="frames is 'worst'; the task classification takes 'last'"):
        Classification(frames="worst")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="first_frame is -1; expected 0 or more"):
        Threshold(threshold=0.5, frames="any", first_frame=-1)
    with pytest.raises(UserError, match="frames is 'last': remove one"):
        Threshold(threshold=0.5, first_frame=1)
    with pytest.raises(UserError, match="first_frame is 3, but a clip has 3 frames: give 0 to 2"):
        decoder(Regression(tolerance=0.5, frames="worst", first_frame=3), SCORE)


COMPARED = ("original", "device")


def test_the_frames_that_differ_are_shown() -> None:
    task = Classification(outputs="logits", frames="any", first_frame=1)
    one, other = answers(task, SCORES, ONE, OTHER)
    (view,) = decoder(task, SCORES).views({"original": one, "device": other}, COMPARED)
    assert isinstance(view, ClassesView)
    assert (view.head, view.decisions) == ("frame 1", {"original": 1, "device": 0})
    assert decoder(Classification(outputs="logits"), SCORES).views({"device": one}, COMPARED) == ()


def test_a_score_is_shown_in_the_frame_whose_side_differs() -> None:
    task = Threshold(threshold=1.0, spread=1.0, frames="any")
    low, high = answers(task, SCORE, LOW, HIGH)
    (view,) = decoder(task, SCORE).views({"original": low, "device": high}, COMPARED)
    assert isinstance(view, ThresholdView)
    assert (view.head, view.scores) == ("frame 1", {"original": 0.5, "device": 1.5})


@pytest.mark.parametrize(("frames", "head"), [("last", ""), ("worst", "frame 1")])
def test_values_are_shown_of_the_worst_frame(frames: str, head: str) -> None:
    task = Regression(tolerance=0.5, frames=frames)  # type: ignore[arg-type]
    low, high = answers(task, SCORE, LOW, HIGH)
    (view,) = decoder(task, SCORE).views({"original": low, "device": high}, COMPARED)
    assert isinstance(view, RegressionView)
    assert view.head == head
    assert view.values["device"] == ((1.5,) if head else (0.6,))


def test_no_more_than_four_frames_are_shown() -> None:
    count = 3 * MOST_SHOWN
    frames = ClipFrames(count, "any")
    clip = Tensor("scores", (count, 1, 2), "float32")
    reader = ClassDecoder((clip,), 0, "logits", frames)
    rows = np.zeros((2, count, 1, 2), np.float32)
    rows[0, ..., 0] = 50.0
    rows[1, :, 0, 1] = np.arange(1, count + 1)
    one, other = reader.read(RawBatch(rows.reshape(2, -1)))
    views = reader.views({"original": one, "device": other}, COMPARED)
    assert [view.head for view in views] == [f"frame {count - n}" for n in range(MOST_SHOWN, 0, -1)]
