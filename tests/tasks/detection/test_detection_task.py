"""The task detection: how outputs become objects, and what it refuses."""

from __future__ import annotations

import io
import os
import sys
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from detectors import Row, answer_of, batch, detector_outputs_of, objects_decoder
from edgeflare.core.answer import Answer
from edgeflare.core.task import OutputMaker
from edgeflare.core.tensor import Tensor
from edgeflare.errors import UserError
from edgeflare.models.pair_file import read_settings
from edgeflare.tasks.detection.box_decodings import grid_anchors, read_anchors
from edgeflare.tasks.detection.detection_answer import DetectionAnswer
from edgeflare.tasks.detection.detection_task import Detection
from kept_decoders import kept_again

GRID = ((4, 2), (2, 3))
ANCHORS = 4 * 4 * 2 + 2 * 2 * 3
BOXES, SCORES = (
    Tensor("regressors", (1, ANCHORS, 6), "float32"),
    Tensor("classificators", (1, ANCHORS, 1), "float32"),
)
POST = (
    Tensor("TFLite_Detection_PostProcess", (1, 3, 4), "float32"),
    Tensor("TFLite_Detection_PostProcess:1", (1, 3), "float32"),
    Tensor("TFLite_Detection_PostProcess:2", (1, 3), "float32"),
    Tensor("TFLite_Detection_PostProcess:3", (1,), "float32"),
)


def decoded(answer: Answer) -> NDArray[np.float64]:
    """Return rows of score, left, top, right, bottom and class."""
    assert isinstance(answer, DetectionAnswer)
    one = answer.detected.objects
    return np.column_stack([one.scores, one.boxes, one.labels])


def by_the_book(
    regressors: NDArray[np.float32], scores: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Decode as BlazeFace does, anchor by anchor: size 8, threshold .6, suppression .2."""
    centres = [
        ((x + 0.5) / cells, (y + 0.5) / cells)
        for cells, repeats in GRID
        for y in range(cells)
        for x in range(cells)
        for _ in range(repeats)
    ]
    kept: list[tuple[float, ...]] = []
    for at in np.argsort(-scores, kind="stable"):
        score = 1.0 / (1.0 + np.exp(-float(scores[at])))
        x, y, width, height = (float(value) / 8.0 for value in regressors[at, :4])
        x, y = x + centres[at][0], y + centres[at][1]
        box = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        if score >= 0.6 and all(iou(box, one[1:]) <= 0.2 for one in kept):
            kept.append((score, *box))
    return np.array([(*one, 0.0) for one in kept]).reshape(-1, 6)


def iou(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    if width <= 0 or height <= 0:
        return 0.0
    areas = sum((one[2] - one[0]) * (one[3] - one[1]) for one in (first, second))
    return width * height / (areas - width * height)


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.floats(-2, 3))
def test_anchors_are_decoded_as_blazeface_is(seed: int, bias: float) -> None:
    rng = np.random.default_rng(seed)
    regressors = rng.normal(0, 1, (1, 1, ANCHORS, 6)).astype(np.float32)
    regressors[..., 2:4] = rng.uniform(0.1, 4, (1, 1, ANCHORS, 2))
    scores = rng.normal(bias, 2, (1, 1, ANCHORS, 1)).astype(np.float32)
    task = Detection(cells=GRID, size=8.0, threshold=0.6, suppression=0.2)
    for tensors, arrays in (
        ((BOXES, SCORES), (regressors, scores)),
        ((SCORES, BOXES), (scores, regressors)),
    ):
        decoder = task.decoder(detector_outputs_of(*tensors))
        again = kept_again(Detection, decoder)
        for one in (decoder, again):
            (answer,) = one.read(batch(tensors, *arrays))
            expected = by_the_book(regressors[0, 0], scores[0, 0, :, 0])
            assert decoded(answer) == pytest.approx(expected, abs=1e-6)


@pytest.mark.skipif("EDGEFLARE_PAIRS" not in os.environ, reason="needs the shared pairs")
def test_blazeface_is_decoded_as_its_own_script_does(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(os.environ["EDGEFLARE_PAIRS"]) / "blazeface_short_int8"
    monkeypatch.syspath_prepend(str(folder))
    import blaze_decode  # type: ignore[import-not-found]  # noqa: PLC0415 - beside the models

    tensors = (
        Tensor("regressors", (1, 896, 16), "float32"),
        Tensor("classificators", (1, 896, 1), "float32"),
    )
    task = Detection(cells=((16, 2), (8, 6)), size=128.0)
    rng = np.random.default_rng(0)
    for _ in range(5):
        regressors = rng.normal(0, 10, (1, 1, 896, 16)).astype(np.float32)
        regressors[..., 2:4] = rng.uniform(5, 60, (1, 1, 896, 2))
        scores = rng.normal(-3, 2, (1, 1, 896, 1)).astype(np.float32)
        decoder = task.decoder(detector_outputs_of(*tensors))
        (answer,) = decoder.read(batch(tensors, regressors, scores))
        expected = blaze_decode.decode(
            regressors[0, 0].astype(float), scores[0, 0].astype(float), blaze_decode.make_anchors()
        )
        assert len(expected) > 5
        assert decoded(answer)[:, :5] == pytest.approx(expected[:, :5], abs=1e-6)
    sys.modules.pop("blaze_decode")


def test_anchors_of_a_file_replace_its_path(tmp_path: Path, refusal: Callable[..., str]) -> None:
    anchors = np.array([[0.25, 0.5, 0.5, 1.0], [0.75, 0.5, 0.1, 0.2]], np.float32)
    np.savez(tmp_path / "anchors.npz", anchors=anchors)
    (tmp_path / "pair.toml").write_text('[task]\nname = "detection"\nanchors = "anchors.npz"\n')
    read = (read_settings(tmp_path / "pair.toml").task or {})["anchors"]
    assert isinstance(read, list)
    assert np.array(read, np.float32).tolist() == anchors.tolist()

    tensors = Tensor("boxes", (1, 2, 4), "float32"), Tensor("scores", (1, 2, 1), "float32")
    task = Detection(anchors=tuple(map(tuple, read)), size=10.0)
    decoder = task.decoder(detector_outputs_of(*tensors))
    boxes = np.full((1, 1, 2, 4), 5.0, np.float32)
    (answer,) = decoder.read(batch(tensors, boxes, np.full((1, 1, 2, 1), 2.0, np.float32)))
    # Half an anchor's width and height away, and half as large.
    assert decoded(answer)[0, 1:5] == pytest.approx([0.375, 0.75, 0.625, 1.25])
    (tmp_path / "anchors.npz").write_bytes(b"no archive")
    assert "anchors.npz" in refusal(read_settings, tmp_path / "pair.toml")
    (tmp_path / "anchors.npz").unlink()
    assert "No such file" in refusal(read_settings, tmp_path / "pair.toml")


def post_processed(names: tuple[str, ...], order: tuple[int, ...]) -> NDArray[np.float64]:
    """Return what is read of the four outputs, under other names and in another order."""
    tensors = tuple(
        Tensor(name, POST[at].shape, "float32") for name, at in zip(names, order, strict=True)
    )
    arrays = (
        np.array([[[[0.1, 0.2, 0.3, 0.4], [0.5, 0.5, 0.7, 0.9], [0, 0, 1, 1]]]], np.float32),
        np.array([[[2.0, 0.0, 1.0]]], np.float32),
        np.array([[[0.9, 0.7, 0.95]]], np.float32),
        np.array([[2.0]], np.float32),
    )
    given = tuple(arrays[at] for at in order)
    decoder = Detection(decoding="postprocess").decoder(detector_outputs_of(*tensors, sample=given))
    (answer,) = decoder.read(batch(tensors, *given))
    return decoded(answer)


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (tuple(one.name for one in POST), (0, 1, 2, 3)),
        (("a", "b", "c", "d"), (2, 0, 3, 1)),
        (("detection_scores", "boxes", "detection_classes", "num"), (2, 0, 1, 3)),
    ],
)
def test_the_four_outputs_are_found_by_name_shape_or_what_they_hold(
    names: tuple[str, ...], order: tuple[int, ...]
) -> None:
    expected = [[0.9, 0.2, 0.1, 0.4, 0.3, 2], [0.7, 0.5, 0.5, 0.9, 0.7, 0]]
    assert post_processed(names, order) == pytest.approx(np.array(expected))


GARBAGE = np.array([np.nan, -9e11, 374370.0], np.float32)


def test_rows_beyond_the_count_may_hold_anything() -> None:
    written = (
        np.array([[0.1, 0.2, 0.3, 0.4], [9, 9, -9, -9], [0, 0, 1, 1]], np.float32),
        np.array([1.0, 0.0, 0.0], np.float32),
        np.array([0.9, 0.7, 0.8], np.float32),
    )
    arrays = [one[None, None].copy() for one in written]
    arrays[0][0, 0, 1:] = GARBAGE[:2, None]
    arrays[1][0, 0, 1:] = GARBAGE[1:]
    arrays[2].view(np.uint32)[0, 0, 1:] = 0x7F800001  # a NaN that signals where it is converted
    count = np.array([[1.0]], np.float32)
    decoder = Detection(decoding="postprocess").decoder(
        detector_outputs_of(*POST, sample=[*arrays, count])
    )
    garbage, clean = (
        batch(POST, *some, count) for some in (arrays, [one[None, None] for one in written])
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (answer,) = decoder.read(garbage)
        kept = [decoder.reduced(one.outputs[0]) for one in (garbage, clean)]
    assert answer.failure is None
    assert decoded(answer) == pytest.approx(np.array([[0.9, 0.2, 0.1, 0.4, 0.3, 1]]))
    np.testing.assert_array_equal(kept[0], kept[1])
    for at in range(3):
        arrays[at][0, 0, :1] = np.nan
        (answer,) = decoder.read(batch(POST, *arrays, count))
        assert answer.failure == "invalid-output"


def test_the_operator_says_which_of_its_outputs_is_which() -> None:
    order = (2, 0, 3, 1)
    tensors = tuple(Tensor(f"classes_{at}", POST[at].shape, "float32") for at in order)
    makers = tuple(OutputMaker(7, "TFLite_Detection_PostProcess", at) for at in order)
    model = replace(detector_outputs_of(*tensors), makers=lambda: makers)
    read_at = Detection(decoding="postprocess").decoder(model).read_at
    assert [order[at] for at in read_at] == [0, 1, 2, 3]


def test_the_background_is_no_object() -> None:
    tensors = Tensor("boxes", (1, 2, 4), "float32"), Tensor("scores", (1, 2, 3), "float32")
    task = Detection(anchors=((0.2, 0.2), (0.8, 0.8)), scores="probabilities", class_offset=1)
    decoder = task.decoder(detector_outputs_of(*tensors))
    scores = np.array([[0.9, 0.05, 0.6], [0.9, 0.1, 0.3]], np.float32).reshape(1, 1, 2, 3)
    (answer,) = decoder.read(batch(tensors, np.full((1, 1, 2, 4), 0.1, np.float32), scores))
    assert decoded(answer)[:, [0, 5]] == pytest.approx(np.array([[0.6, 1.0]]))
    task.require_pair(decoder, decoder, ("cat", "dog"))


def test_a_function_makes_rows_of_objects() -> None:
    task = Detection(decoding="my_module:faces", most_objects=7)
    assert task.post_processing == "my_module:faces"
    assert task.processed == Tensor("objects", (1, 7, 6), "float32")
    assert task.decoder(detector_outputs_of(task.processed)).tensor == task.processed
    assert Detection(decoding="objects").post_processing == ""


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"cells": GRID, "threshold": 1.0}, "threshold is 1.0; expected a number between 0 and 1"),
        ({"cells": GRID, "overlap": 0.0}, "overlap is 0.0"),
        ({"cells": GRID, "size": 0.0}, "size is 0.0"),
        ({"cells": GRID, "most_objects": 0}, "most_objects is 0; expected 1 or more"),
        ({"cells": GRID, "class_offset": -1}, "class_offset is -1"),
        ({"decoding": "anchor", "cells": GRID}, "expected 'anchors', 'postprocess', 'objects'"),
        ({}, "needs one of anchors"),
        ({"decoding": "objects", "cells": GRID}, "remove them"),
        ({"cells": ((0, 2),)}, "cells is"),
        ({"anchors": ((0.1, 0.2), (0.1,))}, "anchors has rows"),
    ],
)
def test_wrong_settings_are_refused(
    settings: dict[str, Any], words: str, refusal: Callable[..., str]
) -> None:
    assert words in refusal(Detection, **settings)


def test_outputs_that_do_not_fit_are_listed(refusal: Callable[..., str]) -> None:
    few = Detection(cells=((4, 2),))
    said = refusal(few.decoder, detector_outputs_of(BOXES, SCORES))
    assert "'regressors' (1, 44, 6)" in said
    assert "there are 32 anchors" in said
    task = Detection(cells=GRID)
    said = refusal(task.decoder, detector_outputs_of(SCORES))
    assert "'classificators' (1, 44, 1)" in said
    assert "outputs = " in said
    named = Detection(cells=GRID, outputs=("regressors", "1x44x1"))
    assert named.decoder(detector_outputs_of(BOXES, SCORES)).tensor == SCORES
    one = Detection(cells=GRID, outputs=("regressors",))
    assert "outputs names 1" in refusal(one.decoder, detector_outputs_of(BOXES, SCORES))
    post = Detection(decoding="postprocess")
    assert "TFLite_Detection" in refusal(post.decoder, detector_outputs_of(*POST[:3]))
    for short, shape in (1, (1, 2)), (2, (1, 2)), (3, (2,)):
        outputs = [
            replace(tensor, shape=shape) if at == short else tensor
            for at, tensor in enumerate(POST)
        ]
        assert "classes (1, n)" in refusal(post.decoder, detector_outputs_of(*outputs))
    objects = Detection(decoding="objects")
    assert "(1, 44, 6)" not in refusal(objects.decoder, detector_outputs_of(SCORES))


@pytest.mark.parametrize("bad", [(0.5, 0.1, 0.4, 0.2), (np.nan, 0.1, 0.4, 0.2)])
def test_boxes_that_are_none_on_a_seed_are_refused(
    bad: tuple[float, ...], refusal: Callable[..., str]
) -> None:
    tensor = Tensor("objects", (1, 2, 6), "float32")
    sample = np.full((3, 1, 2, 6), -1.0, np.float32)
    sample[1, 0, 0] = (*bad, 0.9, 0)
    model = detector_outputs_of(tensor, sample=[sample])
    said = refusal(Detection(decoding="objects").decoder, model)
    assert "detector.tflite: seed 1 has a box that is none" in said


def test_models_of_other_classes_and_names_are_refused(refusal: Callable[..., str]) -> None:
    task = Detection(cells=GRID)
    one, three = (
        task.decoder(detector_outputs_of(BOXES, Tensor("scores", (1, ANCHORS, n), "float32")))
        for n in (1, 3)
    )
    task.require_pair(None, three, ("a", "b", "c"))
    assert "they are no pair" in refusal(task.require_pair, one, three, ())
    assert "class_offset = 1" in refusal(task.require_pair, three, three, ("a", "b"))
    unknown = objects_decoder()
    Detection(decoding="objects").require_pair(unknown, unknown, ("a", "b"))


def test_what_looks_wrong_on_seeds_is_said() -> None:
    decoder, task = objects_decoder(), Detection(decoding="objects", most_objects=1)
    inside: Row = (0.1, 0.1, 0.5, 0.5, 0.9, 0.0)
    outside: Row = (64.0, 64.0, 96.0, 96.0, 0.9, 0.0)
    assert task.warnings(None, [answer_of(decoder)] * 7, None) == []
    (nothing,) = task.warnings(None, [answer_of(decoder)] * 8, None)
    assert "the search would only find appearing ones" in nothing
    (full,) = task.warnings(None, [answer_of(decoder, inside)] * 8, None)
    assert "detects 1 objects, the most that are counted, on all 8 seeds" in full
    two = [answer_of(decoder, inside, outside)]
    (original, compressed) = task.warnings(two, two, None)
    assert original.startswith("the original gives 1 of 2 boxes outside of the picture")
    assert compressed.startswith("the compressed model")


def claimed() -> bytes:
    """A file whose header promises more numbers than there are."""
    file = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**12, 2)}
    np.lib.format.write_array_header_1_0(file, header)  # type: ignore[no-untyped-call]
    return file.getvalue()


def packed(*contents: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for at, content in enumerate(contents):
            archive.writestr(f"anchors{at}.npy", content)
    return file.getvalue()


def inflating() -> bytes:
    file = io.BytesIO()
    np.save(file, np.zeros((2**20, 2)))
    return packed(file.getvalue())


def damaged() -> bytes:
    content = bytearray(inflating())
    content[60:90] = bytes(30)
    return bytes(content)


@pytest.mark.parametrize(
    "content", [claimed, lambda: packed(b"text"), inflating, damaged, lambda: b"", lambda: b"PK"]
)
def test_files_that_hold_no_anchors_are_refused(
    content: Callable[[], bytes], tmp_path: Path
) -> None:
    file = tmp_path / "anchors.npz"
    file.write_bytes(content())
    with pytest.raises(UserError, match=r"not an \.npz or \.npy file of numbers"):
        read_anchors(file)


@pytest.mark.parametrize("columns", [2, 4])
def test_anchors_are_read_from_both_formats(columns: int, tmp_path: Path) -> None:
    anchors = np.arange(3 * columns, dtype=np.float32).reshape(3, columns) / 16
    np.savez(tmp_path / "a.npz", anchors=anchors)
    np.save(tmp_path / "a.npy", anchors)
    assert read_anchors(tmp_path / "a.npz") == read_anchors(tmp_path / "a.npy") == anchors.tolist()


def test_grids_are_bounded() -> None:
    centres = [[0.25, 0.25], [0.75, 0.25], [0.25, 0.75], [0.75, 0.75]]
    assert grid_anchors([(2, 1)]).tolist() == centres
    with pytest.raises(UserError, match="more than a million anchors"):
        grid_anchors([(1_000_000, 1)])


def test_scores_farther_apart_than_one_keep_finite_logits() -> None:
    """Of such a grid only 0 is a probability; its clip must not pass over both ends."""
    known = objects_decoder()
    tensor = Tensor("objects", known.tensor.shape, "int8", scale=4.0)
    decoder = replace(known, outputs=(tensor,))
    rows = np.zeros((1, *tensor.shape), np.int8)
    rows[..., 2:4] = 1
    with np.errstate(all="raise"):
        one, other = (next(decoder.read(batch((tensor,), rows))) for _ in range(2))
    assert one.failure is None
    assert not one.differs(other)
