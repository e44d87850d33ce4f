"""What arms disagree on: the seeds, and the stages that a device has of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from detectors import answer_of, objects_decoder
from edgeflare.core.tensor import GivenRows, Tensor
from edgeflare.devices.device import Device, connect
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.diagnose.execution_modes import Vote
from edgeflare.diagnose.seed_disagreement import (
    Disagreement,
    Probabilities,
    disagreement,
    disagreement_of_values,
    explained,
    readings,
)
from edgeflare.diagnose.stage_votes import StageVotes, ask_with_stages
from edgeflare.domains.image.preprocess import ImageEncoder, Preprocess, preset
from edgeflare.models.evaluator import ONCE, Signature
from edgeflare.models.in_process import InProcessModel
from edgeflare.tasks.classification import softmax
from tampering import COMPRESSED, class_reader, signature_of

SIDE, CLASSES = 6, 5
SIGNATURE = Signature(
    (Tensor("image", (1, SIDE, SIDE, 3), "float32"),), (Tensor("scores", (1, CLASSES), "float32"),)
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
    assert 0.0 <= found.class_share <= 1.0
    assert (found.rate == 0.0) == (found.class_share == 0.0)


def test_one_label_for_nearly_all_tells_nothing_apart() -> None:
    assert not disagreement(list(range(10)) * 3, [0] * 30, NOTHING).varied
    assert disagreement(list(range(10)) * 3, [0, 1, 2] * 10, NOTHING).varied


def mended(
    wanted: Probabilities, got: Probabilities | None = None, own: Preprocess | None = None
) -> Disagreement:
    """What readings make of a disagreement; what is got is of the images as they are."""
    with closing(InProcessModel(SIGNATURE, scored)) as model:
        ways = readings(model, own or Preprocess(), answer)
        found = compared(wanted, shown(IMAGES) if got is None else got)
        return explained(found, IMAGES, wanted, ways)


@pytest.mark.parametrize(
    ("turned", "name"),
    [
        (IMAGES[..., ::-1], "read with its channels in reverse order"),
        (IMAGES[:, ::-1], "read upside down"),
        (255 - IMAGES, "read as its negative"),
    ],
)
def test_another_reading_is_recognised(turned: NDArray[np.uint8], name: str) -> None:
    found = mended(shown(turned))
    assert found.rate > 0.3
    assert found.explained == f"{name} (0% of the difference is left)"


def test_other_preprocessing_is_recognised() -> None:
    """Channels may be reversed before or behind it."""
    signed = ImageEncoder(preset("signed"), SIGNATURE.input).encode(IMAGES)
    own = preset("imagenet")
    encoded = ImageEncoder(own, SIGNATURE.input).encode(IMAGES)
    reversed_ = answer(np.ascontiguousarray(encoded[..., ::-1]))
    assert '"signed"' in (mended(answer(signed)).explained or "")
    found = mended(reversed_, answer(encoded), own)
    assert (found.explained or "").startswith("given its channels in reverse order")


def test_what_no_reading_mends_stays_unexplained() -> None:
    found = mended(np.random.default_rng(5).dirichlet(np.ones(CLASSES), 40))
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


STAGE = class_reader(COMPRESSED.read_bytes()).stage


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    with closing(connect(find_profiles(["emulated-builtin"])[0])) as device:
        yield device


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    """Four inputs of the model, (4, *shape), int8. The first two are of unlike classes."""
    tensor = signature_of(COMPRESSED.read_bytes()).input
    flat = np.stack([np.full(tensor.shape[1:], value, tensor.dtype) for value in (-128, 0, 127)])
    ramp = np.linspace(-128, 127, flat[0].size).reshape(flat[0].shape).astype(tensor.dtype)
    return np.stack([flat[0], ramp, flat[2], flat[1]])


def asked(
    device: Device, images: np.ndarray, of: Sequence[str], most: int = 20
) -> list[StageVotes]:
    """Ask about inputs, each of which is written as the images that the stages make of it.

    "01231" has image 0 by the device's stage, 1 by the pair's, and then one with each single key.
    """
    own, pairs, *keys = (GivenRows(images[[int(one[at]) for one in of]]) for at in range(5))
    single = dict(zip(("mean", "std", "layout"), keys, strict=True))
    return ask_with_stages(device, COMPRESSED, ONCE, (own, STAGE), (pairs, STAGE), single, most)


def written(vote: Vote) -> Vote:
    """A vote as documents have it: without the answer itself, which has arrays."""
    return replace(vote, answer=None)


def test_keys_are_those_that_change_the_input_and_a_decision_whatever_else_is_asked(
    device: Device, images: np.ndarray
) -> None:
    inputs = ["01231", "00222", "01021", "01220"]
    together = asked(device, images, inputs)
    assert not together[0].shipped.agrees(together[0].pair_inputs)
    assert [list(one.pair_keys) for one in together] == [
        ["mean", "std", "layout"],
        [],
        ["std", "layout"],
        ["mean", "std"],
    ]
    assert written(together[0].pair_keys["layout"]) == written(together[0].pair_inputs)
    assert [one.device_queries for one in together] == [9, 5, 7, 7]
    for one, alone in zip(together, inputs, strict=True):
        (same,) = asked(device, images, [alone])
        assert {key: written(vote) for key, vote in one.pair_keys.items()} == {
            key: written(vote) for key, vote in same.pair_keys.items()
        }


def test_keys_are_left_out_that_would_take_too_many_queries(
    device: Device, images: np.ndarray
) -> None:
    for most, keys in ((5, ["layout"]), (8, ["mean", "layout"]), (9, ["mean", "std", "layout"])):
        (found,) = asked(device, images, ["01231"], most)
        assert (list(found.pair_keys), found.device_queries <= most) == (keys, True)
