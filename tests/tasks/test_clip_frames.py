from __future__ import annotations

import numpy as np
import pytest

from edgeflare.core.answer import Answer
from edgeflare.core.task import Decoder, ModelOutputs, Task
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.errors import UserError
from edgeflare.tasks.classification import Classification
from edgeflare.tasks.regression import Regression
from edgeflare.tasks.threshold import Threshold

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
    again = task.decoder_from_json(reader.to_json())
    assert again.to_json() == reader.to_json()
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
