"""Whether arms disagree on the seeds, and what reading of the images would mend it."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from detectors import answer_of, objects_decoder
from edgeflare.core.tensor import Tensor
from edgeflare.diagnose.seed_disagreement import (
    Disagreement,
    Probabilities,
    disagreement,
    disagreement_of_values,
    explained,
    readings,
)
from edgeflare.domains.image.preprocess import ImageEncoder, Preprocess, preset
from edgeflare.models.evaluator import Signature
from edgeflare.models.in_process import InProcessModel
from edgeflare.tasks.classification import softmax

SIDE, CLASSES = 6, 5
SIGNATURE = Signature(
    (Tensor("image", (1, SIDE, SIDE, 3), "float32"),),
    (Tensor("scores", (1, CLASSES), "float32"),),
)
WEIGHTS = np.random.default_rng(3).normal(size=(SIDE * SIDE * 3, CLASSES)).astype(np.float32)
WEIGHTS -= WEIGHTS.mean(axis=0)  # else the image's brightness decides
IMAGES = np.random.default_rng(4).integers(0, 256, (40, SIDE, SIDE, 3), np.uint8)


def scored(inputs: NDArray[np.generic]) -> NDArray[np.float32]:
    return np.asarray(inputs.reshape(len(inputs), -1).astype(np.float32) @ WEIGHTS)


def answer(inputs: NDArray[np.generic]) -> Probabilities:
    return softmax(scored(inputs).astype(np.float64))


def shown(images: NDArray[np.uint8]) -> Probabilities:
    return answer((images / np.float32(255)).astype(np.float32))


def compared(wanted: Probabilities, got: Probabilities) -> Disagreement:
    labels = [[int(label) for label in one.argmax(axis=1)] for one in (wanted, got)]
    return disagreement(labels[0], labels[1], (wanted, got))


NOTHING = (np.zeros((1, 2)), np.zeros((1, 2)))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40))
def test_rates_count_what_differs(pairs: list[tuple[int, int]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    spread = (np.eye(4)[first], np.eye(4)[second])
    found = disagreement(first, second, spread)
    assert found.rate == sum(a != b for a, b in pairs) / len(pairs)
    assert found.distance == pytest.approx(found.rate)
    assert 0.0 <= found.classes <= 1.0
    assert (found.rate == 0.0) == (found.classes == 0.0)


def test_one_label_for_nearly_all_tells_nothing_apart() -> None:
    assert not disagreement(list(range(10)) * 3, [0] * 30, NOTHING).varied
    assert disagreement(list(range(10)) * 3, [0, 1, 2] * 10, NOTHING).varied


@pytest.mark.parametrize(
    ("turned", "name"),
    [
        (IMAGES[..., ::-1], "read with its channels in reverse order"),
        (IMAGES[:, ::-1], "read upside down"),
        (255 - IMAGES, "read as its negative"),
    ],
)
def test_another_reading_is_recognised(turned: NDArray[np.uint8], name: str) -> None:
    wanted = shown(turned)
    with closing(InProcessModel(SIGNATURE, scored)) as model:
        ways = readings(model, Preprocess(), answer)
        found = explained(compared(wanted, shown(IMAGES)), IMAGES, wanted, ways)
    assert found.rate > 0.3
    assert found.explained == f"{name} (0% of the difference is left)"


def test_channels_may_be_reversed_before_or_behind_the_preprocessing() -> None:
    own = preset("imagenet")
    encoded = ImageEncoder(own, SIGNATURE.input).encode(IMAGES)
    wanted = answer(np.ascontiguousarray(encoded[..., ::-1]))
    with closing(InProcessModel(SIGNATURE, scored)) as model:
        ways = readings(model, own, answer)
        found = explained(compared(wanted, answer(encoded)), IMAGES, wanted, ways)
    assert found.explained is not None
    assert found.explained.startswith("given its channels in reverse order")


def test_other_preprocessing_is_recognised() -> None:
    wanted = answer(ImageEncoder(preset("signed"), SIGNATURE.input).encode(IMAGES))
    with closing(InProcessModel(SIGNATURE, scored)) as model:
        ways = readings(model, Preprocess(), answer)
        found = explained(compared(wanted, shown(IMAGES)), IMAGES, wanted, ways)
    assert found.explained is not None
    assert '"signed"' in found.explained


def test_what_no_reading_mends_stays_unexplained() -> None:
    wanted = np.random.default_rng(5).dirichlet(np.ones(CLASSES), 40)
    with closing(InProcessModel(SIGNATURE, scored)) as model:
        ways = readings(model, Preprocess(), answer)
        found = explained(compared(wanted, shown(IMAGES)), IMAGES, wanted, ways)
    assert found.distance > 0.1
    assert found.explained is None


def test_a_little_rounding_asks_for_no_reading() -> None:
    wanted = np.round(shown(IMAGES) * 256) / 256

    def refuse(_images: NDArray[np.uint8]) -> Probabilities:
        raise AssertionError

    assert (
        explained(compared(wanted, shown(IMAGES)), IMAGES, wanted, {"": refuse}).explained is None
    )


def test_objects_that_do_not_differ_are_apart_by_their_scores() -> None:
    faces = objects_decoder()
    first, near, gone = (
        answer_of(faces, (0.1, 0.1, 0.4, 0.4, score, 0.0)) for score in (0.75, 0.625, 0.25)
    )
    same = disagreement_of_values([first, first], [first, first])
    assert (same.rate, same.distance) == (0.0, 0.0)
    found = disagreement_of_values([first, first], [near, gone])
    assert found.rate == 0.5
    assert found.distance == pytest.approx((0.125 + 0.5) / 2)
