"""Classes, outputs and values in another order: found where they are, and said of nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.core.answer import Answer, Confusion
from edgeflare.core.task import Decoder
from edgeflare.core.tensor import RawBatch, Tensor, pack_rows
from edgeflare.run.systematic.orders import (
    LEAST_CHANGED,
    ConfirmedOrder,
    class_order,
    output_order,
    value_order,
)
from edgeflare.tasks.classification import ClassDecoder, HeadsDecoder, softmax
from edgeflare.tasks.detection.detection_answer import DetectionAnswer
from edgeflare.tasks.detection.detections import Candidates, DetectionRule, detected
from edgeflare.tasks.frame_pooling import NO_CLIP
from edgeflare.tasks.segmentation.mask_answer import MaskAnswer, MaskRule
from edgeflare.tasks.value_decoder import Measure, ValueAnswer, ValueDecoder

Scores = NDArray[np.float64]
NOTHING = np.empty(0)


def scores(rng: np.random.Generator, seeds: int, classes: int) -> Scores:
    """Logits of a classifier that is sure of most seeds, which have their classes in turn."""
    logits = rng.normal(size=(seeds, classes))
    logits[np.arange(seeds), np.arange(seeds) % classes] += 5.0
    return logits


def rounded(rng: np.random.Generator, logits: Scores) -> Scores:
    """The logarithms of 8-bit probabilities of nearly the same logits."""
    shares = softmax(logits + rng.normal(scale=0.2, size=logits.shape))
    return np.asarray(np.log(np.maximum(np.round(shares * 256) / 256, 1 / 512)))


def order_of(first: Scores, second: Scores) -> ConfirmedOrder | None:
    decided = zip(first.argmax(axis=1), second.argmax(axis=1), strict=True)
    return class_order([np.array([[a, b, 1]]) for a, b in decided], (first, second))


@pytest.mark.parametrize(("classes", "seeds"), [(2, 16), (10, 64), (10, 24), (100, 300)])
def test_classes_in_another_order_are_named_with_the_agreement(classes: int, seeds: int) -> None:
    rng = np.random.default_rng(classes + seeds)
    first = scores(rng, seeds, classes)
    places = rng.permutation(classes) if classes > 2 else np.array([1, 0])
    second = rounded(rng, first)[:, np.argsort(places)]  # class c stands at places[c]
    found = order_of(first, second)
    assert found is not None
    wrong = [(one, other) for one, other in found.moved if places[one] != other]
    decided = {int(label) for label in first.argmax(axis=1)}
    assert not wrong
    assert len(found.moved) >= 0.9 * sum(places[one] != one for one in decided)
    assert found.before < 0.3
    assert found.after > 0.9


def test_a_shift_by_one_is_found_of_classes_that_are_seen_once() -> None:
    """So it is behind a background class, where 8-bit scores of a thousand are nearly all 0."""
    rng = np.random.default_rng(0)
    first = scores(rng, 60, 1000)
    found = order_of(first, np.roll(rounded(rng, first), 1, axis=1))
    assert found is not None
    assert len(found.moved) > 55
    assert {other - one for one, other in found.moved} == {1}
    assert found.after == 1.0


def test_two_classes_that_are_exchanged_are_found_among_ten_unless_seeds_are_too_few() -> None:
    rng = np.random.default_rng(1)
    first = scores(rng, 200, 10)
    exchanged = [0, 1, 7, 3, 4, 5, 6, 2, 8, 9]
    found = order_of(first, rounded(rng, first)[:, exchanged])
    assert found is not None
    assert set(found.moved) == {(2, 7), (7, 2)}
    assert found.before == pytest.approx(0.8, abs=0.03)
    for seeds, known in ((LEAST_CHANGED - 1, False), (LEAST_CHANGED, True)):
        first = scores(np.random.default_rng(2), seeds, 2)
        assert (order_of(first, first[:, ::-1]) is not None) == known


def test_no_order_is_said_of_pairs_that_have_none() -> None:
    for number in range(8):
        rng = np.random.default_rng(number)
        first = scores(rng, 60, 10)
        noise = rng.normal(size=first.shape)
        one_class = first - 9.0 * np.eye(10)[3]  # class 3 goes to whatever is second
        merged = first.copy()
        merged[:, [5, 6]] = merged[:, [6, 6]] + np.array([0.0, 1.0])
        seconds = {
            "healthy": rounded(rng, first),
            "noisy": first + 4.0 * noise,
            "random": noise,
            "collapsed": first + 50.0 * np.eye(10)[3],
            "constant": np.tile(first[0], (60, 1)),
            "a class lost": one_class,
            "a class in another": merged,
        }
        said = {name: order_of(first, second) for name, second in seconds.items()}
        assert said == dict.fromkeys(seconds), number


def test_a_class_that_takes_over_another_is_no_order() -> None:
    """The rarer of the two keeps its place, so the two are confused, and not exchanged."""
    pairs = [(0, 1)] * 40 + [(1, 1)] * 10 + [(2, 2)] * 20
    assert class_order([np.array([[a, b, 1]]) for a, b in pairs]) is None


def objects(boxes: NDArray[np.float64], labels: NDArray[np.int64]) -> DetectionAnswer:
    rule = DetectionRule(threshold=0.5, overlap=0.5, suppression=1.0, most_objects=9)
    count = len(labels)
    known = Candidates(boxes, labels, np.full(count, 0.9), np.ones(count), np.full(count, np.inf))
    return DetectionAnswer(0, False, NOTHING, NOTHING, detected=detected(known, rule))


def mask(pixels: NDArray[np.int64]) -> MaskAnswer:
    margins = np.ones(pixels.shape, np.float16)
    told = {"margins": margins, "classes": 4, "rule": MaskRule(0.9, 0)}
    return MaskAnswer(0, False, NOTHING, NOTHING, mask=pixels.astype(np.uint8), **told)  # type: ignore[arg-type]


def test_classes_of_objects_and_of_pixels_are_matched_by_their_places() -> None:
    rng = np.random.default_rng(3)
    places = np.array([1, 2, 0, 3])
    seen: dict[str, list[Confusion]] = {"objects": [], "pixels": []}
    for _ in range(20):
        corners = rng.uniform(size=(3, 2))
        boxes = np.hstack([corners, corners + 0.2])
        labels, pixels = rng.integers(4, size=3), rng.integers(4, size=(6, 6))
        turned = objects(boxes[:2] + 0.01, places[labels[:2]])
        seen["objects"].append(objects(boxes, labels).confusion(turned))
        seen["pixels"].append(mask(pixels).confusion(mask(places[pixels])))
    for name, confusions in seen.items():
        found = class_order(confusions)
        assert found is not None, name
        assert found.moved == ((0, 1), (1, 2), (2, 0)), name
        assert found.after > 0.95, name


def test_an_object_without_a_partner_is_given_to_no_class_and_what_failed_has_none() -> None:
    boxes = np.array([[0.1, 0.1, 0.3, 0.3], [0.6, 0.6, 0.9, 0.9]])
    two, one = objects(boxes, np.array([1, 2])), objects(boxes[:1], np.array([3]))
    assert two.confusion(one).tolist() == [[1, 3, 1], [2, -1, 1]]
    assert one.confusion(two).tolist() == [[3, 1, 1], [-1, 2, 1]]
    failed = Answer(None, False, np.zeros(2), np.zeros(2), "crash")
    given = Answer(1, False, np.ones(2), np.ones(2))
    assert not len(failed.confusion(given))
    assert np.isnan(given.support(failed)).all()


SEEDS = 24
MEASURE = Measure(0.5, "absolute")


def tensors(dtype: str = "float32", size: int = 4) -> tuple[Tensor, ...]:
    scale = 0.0 if dtype == "float32" else 0.1
    return tuple(Tensor(name, (1, size), dtype, scale, 0) for name in ("a", "b", "c"))


def rows(outputs: tuple[Tensor, ...], values: list[NDArray[np.float64]]) -> NDArray[np.generic]:
    raw = [
        one.astype(np.float32) if tensor.dtype == "float32" else np.round(one / 0.1).astype(np.int8)
        for tensor, one in zip(outputs, values, strict=True)
    ]
    return pack_rows(outputs, [one.reshape(SEEDS, 1, -1) for one in raw])


def of_heads(outputs: tuple[Tensor, ...], read: str) -> Decoder:
    return HeadsDecoder(
        tuple(
            ClassDecoder(outputs, at, "logits")
            for at, one in enumerate(outputs)
            if one.name in read
        )
    )


def of_values(outputs: tuple[Tensor, ...], read: str) -> Decoder:
    at = [one.name for one in outputs].index(read)
    return ValueDecoder(outputs, at, MEASURE, NO_CLIP)


@pytest.mark.parametrize(
    ("read", "given", "moved"),
    [
        ("ab", "bac", ((0, 1), (1, 0))),
        ("abc", "cab", ((0, 1), (1, 2), (2, 0))),
        ("b", "acb", ((2, 1),)),
    ],
    ids=["two heads", "three heads", "an output that is not read"],
)
def test_outputs_of_one_shape_in_another_order_are_named(
    read: str, given: str, moved: tuple[tuple[int, int], ...]
) -> None:
    rng = np.random.default_rng(0)
    values = {name: 3.0 * rng.normal(size=(SEEDS, 4)) for name in "abc"}
    floats, integers = tensors(), tensors("int8")
    made = of_values if len(read) == 1 else of_heads
    found = output_order(
        made(floats, read),
        rows(floats, list(values.values())),
        made(integers, read),
        rows(integers, [values[name] for name in given]),
    )
    assert found is not None
    assert found.moved == moved
    assert found.before < 0.5
    assert found.after > 0.9


def test_no_order_is_said_of_outputs_that_are_in_place_or_are_none_of_the_original() -> None:
    for number in range(8):
        rng = np.random.default_rng(number)
        values = [3.0 * rng.normal(size=(SEEDS, 4)) for _ in "abc"]
        floats, integers = tensors(), tensors("int8")
        for others in (
            values,
            [np.clip(one + rng.normal(size=one.shape), -9.0, 9.0) for one in values],
            [3.0 * rng.normal(size=one.shape) for one in values],
            [np.zeros_like(one) for one in values],
        ):
            decoders = of_heads(floats, "abc"), of_heads(integers, "abc")
            first, second = rows(floats, values), rows(integers, others)
            assert output_order(decoders[0], first, decoders[1], second) is None


def answers(values: NDArray[np.float64]) -> list[ValueAnswer]:
    outputs = (Tensor("a", (1, values.shape[1]), "float32"),)
    read = ValueDecoder(outputs, 0, MEASURE, NO_CLIP).read(RawBatch(values.astype(np.float32)))
    return [one for one in read if isinstance(one, ValueAnswer)]


def test_values_in_another_order_are_named() -> None:
    """Coordinates with x and y exchanged, of which the last two stay."""
    rng = np.random.default_rng(1)
    values = 10.0 * rng.normal(size=(40, 6))
    moved = values[:, [1, 0, 3, 2, 4, 5]] + rng.normal(scale=0.05, size=values.shape)
    found = value_order(answers(values), answers(moved))
    assert found is not None
    assert found.moved == ((0, 1), (1, 0), (2, 3), (3, 2))
    assert (found.before, found.after) == (0.0, 1.0)


def test_values_that_are_merely_wrong_have_no_other_order() -> None:
    for number in range(8):
        rng = np.random.default_rng(number)
        values = 10.0 * rng.normal(size=(40, 6))
        for other in (
            values + rng.normal(size=values.shape),
            rng.normal(size=values.shape),
            np.minimum(values, 2.0),
            np.tile(values[:, :1], 6),
            values + 3.0,
        ):
            assert value_order(answers(values), answers(other)) is None
