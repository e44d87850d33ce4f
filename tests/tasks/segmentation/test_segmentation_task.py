from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.core.task import ModelOutputs
from edgeflare.core.tensor import RawBatch, Tensor, pack_rows
from edgeflare.errors import UserError
from edgeflare.pages.answers.masks import SegmentationView
from edgeflare.tasks.segmentation.mask_answer import MaskAnswer
from edgeflare.tasks.segmentation.mask_decoder import MaskDecoder
from edgeflare.tasks.segmentation.segmentation_task import Segmentation
from edgeflare.tasks.task_registry import find_task
from kept_decoders import kept_again

ROWS, COLUMNS = 4, 5
SCORE = Tensor("mask", (1, ROWS, COLUMNS, 1), "float32")
INT8 = Tensor("mask", (1, ROWS, COLUMNS), "int8", 1 / 256, -128)
CLASSES = Tensor("mask", (1, ROWS, COLUMNS, 3), "float32")
INDEXES = Tensor("mask", (1, ROWS, COLUMNS), "int32")


PICTURES = ((ROWS, COLUMNS),)


def outputs(
    *tensors: Tensor, frames: int = 0, pictures: tuple[tuple[int, int], ...] = PICTURES
) -> ModelOutputs:
    def no_sample(_seeds: int) -> RawBatch:
        raise AssertionError("masks need no sample")

    return ModelOutputs(
        "mask.tflite", tensors, frozenset(), frames, (), no_sample, picture_sizes=pictures
    )


def decoder(tensor: Tensor, **keys: Any) -> MaskDecoder:
    return Segmentation(**keys).decoder(outputs(tensor))


def read(one: MaskDecoder, *rows: NDArray[Any]) -> list[MaskAnswer]:
    found = list(one.read(RawBatch(np.stack(rows).astype(one.tensor.dtype))))
    assert all(isinstance(answer, MaskAnswer) for answer in found)
    return found  # type: ignore[return-value]


@given(arrays(np.float32, (ROWS, COLUMNS, 3), elements=st.integers(-3, 3)))
def test_the_class_of_a_pixel_has_its_largest_score(scores: NDArray[np.float32]) -> None:
    (answer,) = read(decoder(CLASSES), scores)
    assert np.array_equal(answer.mask, scores.argmax(axis=2))
    third, second, first = np.moveaxis(np.sort(scores, axis=2), 2, 0)
    assert np.array_equal(answer.margins, first - second)
    assert third.shape == answer.mask.shape


@given(arrays(np.float32, (ROWS, COLUMNS, 6), elements=st.integers(-2, 2)))
def test_what_a_run_keeps_of_many_classes_is_read_alike(scores: NDArray[np.float32]) -> None:
    one = decoder(Tensor("mask", (1, ROWS, COLUMNS, 6), "float32"))
    reduced = one.reduced(scores).reshape(scores.shape)
    (known,), (again,) = read(one, scores), read(one, reduced)
    assert np.array_equal(known.mask, again.mask)
    assert np.array_equal(known.margins, again.margins)
    strict = known.margins.ravel() > 0
    assert all(len(np.unique(pixel)) == 2 for pixel in reduced.reshape(-1, 6)[strict])


@given(arrays(np.int8, (ROWS, COLUMNS)))
def test_a_single_score_is_held_against_the_threshold(raw: NDArray[np.int8]) -> None:
    """As check_tasks.py of the pair does: a pixel whose score equals the threshold is below it."""
    (answer,) = read(decoder(INT8), raw)
    real = (raw.astype(float) + 128) / 256
    assert np.array_equal(answer.mask, real > 0.5)
    np.testing.assert_allclose(answer.margins, np.abs(real - 0.5), rtol=1e-3)
    assert np.array_equal(answer.margins == 0.0, raw == 0)


def test_a_threshold_off_the_grid_of_float32_is_met_by_its_step() -> None:
    scale = float(np.float32(0.1))
    tenth = Tensor("mask", (1, 2, 2), "uint8", scale, 0)
    (answer,) = read(decoder(tenth, threshold=0.3), np.array([[2, 3], [4, 255]]))
    assert answer.mask.tolist() == [[0, 0], [1, 1]]
    assert (answer.margins == 0.0).tolist() == [[False, True], [False, False]]


def test_margins_that_half_precision_cannot_hold_are_no_ties() -> None:
    scores = np.full((ROWS, COLUMNS, 1), 0.5, np.float32)
    scores[0, 0] = np.nextafter(np.float32(0.5), np.float32(1.0))
    scores[0, 1] = 1e30
    (answer,) = read(decoder(SCORE), scores)
    assert np.count_nonzero(answer.margins) == 2
    assert np.isfinite(answer.margins).all()
    assert answer.mask[0].tolist() == [1, 1, 0, 0, 0]


def test_classes_that_the_model_chose_itself_are_taken_as_they_are() -> None:
    mask = np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    (answer,) = read(decoder(INDEXES), mask)
    assert np.array_equal(answer.mask, mask)
    assert not answer.tied
    as_numbers = Tensor("mask", (1, ROWS, COLUMNS), "float32")
    (same,) = read(decoder(as_numbers, pixels="classes"), mask)
    assert np.array_equal(same.mask, mask)
    for wrong in (-1.0, 256.0, 0.5, nan):
        (failed,) = read(decoder(as_numbers, pixels="classes"), np.where(mask == 3, wrong, mask))
        assert failed.failure == "invalid-output"


def test_one_output_is_read_alike_alone_and_among_others() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random((3, 1, ROWS, COLUMNS, 3)).astype(np.float32)
    other = Tensor("state", (1, 4), "float32")
    task = Segmentation(overlap=0.8, region=3)
    among = task.decoder(outputs(other, CLASSES))
    again = kept_again(find_task("segmentation"), among)
    packed = RawBatch(pack_rows((other, CLASSES), [np.ones((3, 1, 4), np.float32), scores]))
    alone = read(decoder(CLASSES, overlap=0.8, region=3), *scores)
    for mine, its, same in zip(alone, among.read(packed), again.read(packed), strict=True):
        assert mine.equals(its)
        assert mine.equals(same)
        assert isinstance(same, MaskAnswer)
        assert mine.rule == same.rule


def test_of_a_clip_the_last_frame_counts() -> None:
    clip = Tensor("mask", (2, 1, ROWS, COLUMNS), "float32")
    frames = np.zeros((2, 1, ROWS, COLUMNS), np.float32)
    frames[1] = 1.0
    one = Segmentation().decoder(outputs(clip, frames=2))
    (answer,) = read(one, frames)
    assert answer.mask.all()
    again = kept_again(Segmentation, one)
    (same,) = again.read(RawBatch(frames[None]))
    assert answer.equals(same)


def test_failed_rows_have_no_mask() -> None:
    scores = np.zeros((3, ROWS, COLUMNS, 1), np.float32)
    scores[0, 0, 0] = np.nan
    bad, good, hung = decoder(SCORE).read(RawBatch(scores, {2: "hang"}))
    assert (bad.failure, good.failure, hung.failure) == ("invalid-output", None, "hang")
    assert decoder(SCORE).describe_answer(hung) == "nothing"


def views(tensor: Tensor, **arms: MaskAnswer) -> SegmentationView:
    one = decoder(tensor, overlap=0.8, region=2)
    (view,) = one.views(arms, ("original", "device"))
    return view


def test_masks_are_shown_in_runs_with_their_overlap() -> None:
    one = decoder(SCORE, overlap=0.8, region=2)
    original, device = read(
        one, np.zeros((ROWS, COLUMNS, 1)), np.eye(ROWS, COLUMNS)[..., None] * 0.9
    )
    view = views(SCORE, original=original, device=device)
    assert (view.rows, view.columns, view.classes) == (ROWS, COLUMNS, ())
    assert view.masks["original"] == "0 20"
    assert view.masks["device"] == "1 1 0 5 1 1 0 5 1 1 0 5 1 1 0 1"
    assert view.mean_iou == pytest.approx((16 / 20 + 0) / 2)
    assert (view.least_iou, view.region, view.least_region) == (0.8, 4, 2)
    (failed,) = one.read(RawBatch(np.zeros((1, ROWS, COLUMNS, 1), np.float32), {0: "hang"}))
    assert isinstance(failed, MaskAnswer)
    view = views(SCORE, original=original, device=failed)
    assert (view.masks["device"], view.mean_iou, view.region) == (None, None, None)


def test_masks_of_a_finding_are_kept_in_less_than_ten_kilobytes() -> None:
    """Blobs with ragged borders and speckles, as masks of persons have, on seed and trigger."""
    large = Tensor("mask", (1, 256, 256, 1), "float32")
    rng = np.random.default_rng(1)
    row, column = np.mgrid[:256, :256] / 256
    arms = {}
    for arm in ("original", "twin", "device"):
        ragged = 0.3 - np.hypot(row - 0.6, column - 0.5) + rng.normal(0, 0.05, (256, 256))
        (arms[arm],) = read(decoder(large), 0.5 + ragged[..., None])
    shown = decoder(large).views(arms, ("original", "device"))
    assert 2 * len(msgspec.json.encode(shown)) < 10_000
    assert shown[0].rows >= 16


def test_an_answer_is_described_by_the_shares_of_its_classes() -> None:
    mask = np.zeros((ROWS, COLUMNS), np.uint8)
    mask[0], mask[1, :4], mask[1, 4] = 7, 2, 9
    one = decoder(INDEXES)
    (answer,) = read(one, mask)
    assert one.describe_answer(answer) == "class 0 50 %, class 7 25 %, class 2 20 %"
    assert one.describe_answer(answer, ("road",)).startswith("road 50 %, class 7")
    (empty,) = read(one, np.zeros_like(mask))
    assert one.describe_answer(empty, ("road",)) == "road 100 %"


def test_models_that_see_one_class_alone_are_warned_of() -> None:
    one = decoder(SCORE)
    alike = read(one, *np.zeros((9, ROWS, COLUMNS, 1)))
    apart = read(one, *np.zeros((8, ROWS, COLUMNS, 1)), np.ones((ROWS, COLUMNS, 1)))
    (said,) = Segmentation().warnings(apart, alike, None)
    assert said.startswith("the compressed model gives every pixel of all 9 seeds the class 0:")
    assert Segmentation().warnings(None, apart, None) == []
    assert Segmentation().warnings(None, alike[:7], None) == []


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"overlap": 1.5}, "overlap is 1.5; expected a mean IoU from 0 to 1"),
        ({"overlap": nan}, "overlap is nan"),
        ({"region": -1}, "region is -1; expected a number of pixels"),
        ({"overlap": 0.0}, "overlap and region are both 0"),
        ({"threshold": inf}, "threshold is inf; expected a finite number"),
        ({"layout": "CHWN"}, "layout is 'CHWN'; expected 'NHWC' or 'NCHW'"),
        ({"pixels": "names"}, "pixels is 'names'; expected 'auto', 'scores' or 'classes'"),
        ({"ignore": 3}, "unknown key ignore"),
    ],
)
def test_values_out_of_their_range_are_refused(keys: dict[str, Any], said: str) -> None:
    if "ignore" in keys:
        with pytest.raises(UserError, match=said):
            find_task("segmentation", keys)
    else:
        with pytest.raises(UserError, match=said):
            Segmentation(**keys)


@pytest.mark.parametrize(
    ("tensor", "keys", "said"),
    [
        (SCORE, {"region": 21}, "region is 21, but a mask has 4 x 5 = 20 pixels: give fewer"),
        (INT8, {"threshold": 1.5}, "gives 0 to 0.996094: give a threshold between them"),
        (INT8, {"threshold": -0.1}, "gives 0 to 0.996094: give a threshold between them"),
        (CLASSES, {"threshold": 0.5}, "has a score for each class: remove the key threshold"),
        (INDEXES, {"threshold": 0.5}, "has classes: remove the key threshold"),
        (CLASSES, {"pixels": "classes"}, "has 3 numbers for each pixel: write pixels"),
        (Tensor("scores", (1, 10), "float32"), {}, r"fits none of the outputs: 'scores' \(1, 10\)"),
        (Tensor("many", (1, 257, 9, 257), "float32"), {}, "fits none of the outputs"),
    ],
)
def test_outputs_that_do_not_go_with_the_keys_are_refused(
    tensor: Tensor, keys: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        decoder(tensor, **keys)


def test_two_models_are_a_pair_where_their_masks_are_alike(refusal: Callable[..., str]) -> None:
    task = Segmentation()
    one, wide = decoder(SCORE), decoder(Tensor("mask", (1, ROWS, 6, 1), "float32"))
    task.require_pair(one, decoder(INT8), ("ground", "person"))
    task.require_pair(decoder(CLASSES), decoder(INDEXES), ("a", "b", "c"))
    assert "masks of 4 x 6 pixels and the compressed model of 4 x 5" in refusal(
        task.require_pair, wide, one, ()
    )
    assert "tells 3 classes apart and the compressed model 2" in refusal(
        task.require_pair, decoder(CLASSES), one, ()
    )
    assert "classes has 3 names, but the compressed model tells 2" in refusal(
        task.require_pair, None, one, ("a", "b", "c")
    )


@given(arrays(np.float32, (2, ROWS, COLUMNS, 3), elements=st.integers(-2, 2)))
def test_scores_that_come_first_are_read_as_those_that_come_last(
    clips: NDArray[np.float32],
) -> None:
    """In what is read, what a run keeps and what is read of that again, also of clips and rows."""
    first = np.ascontiguousarray(np.moveaxis(clips, -1, 1))
    state = Tensor("state", (1, 2), "float32")
    for frames in (0, 2):
        held = (frames,) if frames else ()
        tensor = Tensor("mask", (*held, 1, 3, ROWS, COLUMNS), "float32")
        row = (state, tensor)
        one = Segmentation().decoder(outputs(*row, frames=frames))
        again = kept_again(Segmentation, one)
        values = [np.ones((1, 1, 2), np.float32), first[None] if frames else first[1:]]
        packed = pack_rows(row, values)
        (expected,) = read(decoder(CLASSES), clips[1])
        for reader, kept in ((one, packed), (again, one.reduced(packed[0])[None])):
            (answer,) = reader.read(RawBatch(kept))
            assert answer.equals(expected)
            assert isinstance(answer, MaskAnswer)
            assert np.array_equal(answer.margins, expected.margins)


@pytest.mark.parametrize(
    ("shape", "pictures", "said", "size"),
    [
        ((1, 1, 256, 256), (), None, (256, 256, 2)),
        ((1, 21, 513, 513), (), None, (513, 513, 21)),
        ((1, 513, 513, 21), (), "NCHW", (513, 513, 21)),
        ((1, 21, 65, 65), ((513, 513),), None, (65, 65, 21)),
        ((1, 65, 65, 21), ((513, 513),), None, (65, 65, 21)),
        ((1, 19, 33, 65), ((257, 513), (9, 9)), None, (33, 65, 19)),
        ((1, 33, 65, 19), ((256, 512),), None, (33, 65, 19)),
        ((1, 64, 65, 65), ((65, 65),), None, (65, 65, 64)),
        ((1, 21, 65, 65), (), "NCHW", (65, 65, 21)),
        ((1, 65, 65, 65), ((513, 513),), "NCHW", (65, 65, 65)),
    ],
)
def test_the_layout_of_a_mask_is_that_of_the_pictures(
    shape: tuple[int, ...],
    pictures: tuple[tuple[int, int], ...],
    said: Any,
    size: tuple[int, int, int],
) -> None:
    tensor = Tensor("mask", shape, "float32")
    one = Segmentation(layout=said).decoder(outputs(tensor, pictures=pictures))
    assert (*one.size[:2], one.classes) == size


@pytest.mark.parametrize(
    ("shape", "pictures"),
    [
        ((1, 21, 65, 65), ()),
        ((1, 65, 65, 65), ((65, 65),)),
        ((1, 64, 65, 65), ((513, 513),)),
        ((1, 21, 30, 65), ((513, 513),)),
    ],
)
def test_a_mask_of_either_layout_is_asked_about(
    shape: tuple[int, ...], pictures: tuple[tuple[int, int], ...], refusal: Callable[..., str]
) -> None:
    tensor = Tensor("mask", shape, "float32")
    said = refusal(Segmentation().decoder, outputs(tensor, pictures=pictures))
    _, first, second, third = shape
    assert f"may be {first} x {second} pixels with {third} scores each, or {second} x" in said
    assert 'layout = "NCHW" for the latter, under [task]' in said
