"""Values as the tensors of a model hold them, and as the rows that a run keeps."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.raw_output_rows import (
    UnreadableRowError,
    batch_from_bytes,
    joined,
    kept_row,
    parted,
    restored_row,
)
from edgeflare.core.task import Decoder, ModelOutputs
from edgeflare.core.tensor import (
    RawBatch,
    Tensor,
    pack_rows,
    quantize,
    row_layout,
    unpack_rows,
    unpack_tensor,
)
from edgeflare.errors import UserError
from edgeflare.tasks.detection.detection_task import Detection
from edgeflare.tasks.regression import Regression
from edgeflare.tasks.segmentation.segmentation_task import Segmentation


@pytest.mark.parametrize(
    ("dtype", "held"),
    [
        ("bool", [False, False, True, True]),
        ("int64", [0, 0, 1, 2]),
        ("float16", [0.0, 0.25, 0.5, 2.0]),
        ("float32", [0.0, 0.25, 0.5, 2.0]),
    ],
)
def test_a_tensor_without_a_scale_holds_the_values_themselves(
    dtype: str, held: list[float]
) -> None:
    values = quantize(np.array([0, 0.25, 0.5, 2], np.float32), Tensor("x", (4,), dtype))
    assert (values.dtype, values.tolist()) == (np.dtype(dtype), held)


@pytest.mark.parametrize("dtype", ["complex64", ""])
def test_a_tensor_that_holds_no_numbers_is_named(dtype: str) -> None:
    with pytest.raises(UserError, match=f"the tensor 'x' is of type {dtype or 'unknown'}"):
        quantize(np.zeros(2, np.float32), Tensor("x", (2,), dtype))


TENSORS = st.lists(
    st.builds(
        lambda shape, dtype: Tensor("t", tuple(shape), dtype),
        st.lists(st.integers(1, 4), max_size=3),
        st.sampled_from(["bool", "int8", "int64", "float16", "float32", "complex64"]),
    ),
    min_size=1,
    max_size=3,
)


def values(tensor: Tensor, batch: int) -> NDArray[Any]:
    raw = np.random.default_rng(batch).integers(0, 2, (batch, *tensor.shape))
    return raw.astype(tensor.dtype)


@given(TENSORS, st.integers(1, 4))
def test_rows_keep_every_tensor_one_behind_the_other(tensors: list[Tensor], batch: int) -> None:
    arrays = [values(tensor, batch) for tensor in tensors]
    rows = pack_rows(tensors, arrays)
    shape, dtype = row_layout(tensors)
    assert (rows.shape, rows.dtype) == ((batch, *shape), dtype)
    for index, row in enumerate(rows):
        assert row.tobytes() == b"".join(array[index].tobytes() for array in arrays)
    for at, (array, back) in enumerate(zip(arrays, unpack_rows(tensors, rows), strict=True)):
        assert back.dtype == array.dtype
        assert np.array_equal(back, array)
        assert np.array_equal(unpack_tensor(tensors, rows, at), array)


def test_one_tensor_is_a_row_as_it_is() -> None:
    assert row_layout([Tensor("image", (1, 4, 5, 3), "int8")]) == ((4, 5, 3), np.dtype("int8"))
    clip = Tensor("clip", (49, 1, 64), "float32")
    assert row_layout([clip]) == ((49, 1, 64), np.dtype("float32"))
    assert prod(row_layout([clip, clip])[0]) == 2 * 49 * 64 * 4


def test_what_does_not_fit_is_refused() -> None:
    tensor = Tensor("x", (1, 3), "float32")
    for wrong in (np.zeros((2, 1, 4), np.float32), np.zeros((2, 1, 3))):
        with pytest.raises(ValueError, match=r"expected float32 \(2, 1, 3\)"):
            pack_rows([tensor], [wrong])


CELLS = ((8, 2), (4, 6))
PLACES = 224
SCORES = Tensor("scores", (1, PLACES, 3), "int8", 0.1, -3)
REGRESSORS = Tensor("regressors", (1, PLACES, 16), "float32")


def opened(task: Any, *tensors: Tensor) -> Decoder:
    shape, dtype = row_layout(tensors)

    def sample(count: int) -> RawBatch:
        return RawBatch(np.zeros((count, *shape), dtype))

    found: Decoder = task.decoder(ModelOutputs("m", tensors, frozenset(), 0, (), sample))
    return found


@cache
def detector(**keys: Any) -> tuple[Decoder, tuple[Tensor, ...]]:
    task = Detection(decoding="anchors", cells=CELLS, size=64.0, **keys)
    return opened(task, REGRESSORS, SCORES), (REGRESSORS, SCORES)


@cache
def masks() -> tuple[Decoder, tuple[Tensor, ...]]:
    tensor = Tensor("mask", (1, 12, 10, 1), "float32")
    return opened(Segmentation(), tensor), (tensor,)


@cache
def value_rows() -> tuple[Decoder, tuple[Tensor, ...]]:
    tensor = Tensor("values", (1, 7), "float32")
    return opened(Regression(tolerance=0.1), tensor), (tensor,)


def row_of(tensors: tuple[Tensor, ...], seed: int) -> NDArray[np.generic]:
    """A row of few different numbers, so that many are equal."""
    rng = np.random.default_rng(seed)
    spread = int(rng.integers(1, 80))
    arrays = [
        rng.integers(-spread, spread, (1, *one.shape)).astype(one.dtype)
        if one.dtype == "int8"
        else rng.random((1, *one.shape), np.float32) * rng.choice([1.0, 9.0]).astype(np.float32)
        for one in tensors
    ]
    (row,) = pack_rows(tensors, arrays)
    return np.asarray(row)


DECODERS: tuple[Callable[[], tuple[Decoder, tuple[Tensor, ...]]], ...] = (
    detector,
    lambda: detector(class_offset=1, threshold=0.7),
    masks,
    value_rows,
)


@pytest.mark.slow
@pytest.mark.parametrize("make", DECODERS, ids=["detector", "background", "masks", "values"])
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_kept_row_is_read_as_the_row_is(
    make: Callable[[], tuple[Decoder, tuple[Tensor, ...]]], seed: int
) -> None:
    decoder, tensors = make()
    row = row_of(tensors, seed)
    (before,) = decoder.read(RawBatch(row[None]))
    (after,) = decoder.read(batch_from_bytes(decoder, [kept_row(decoder, row)], {}))
    assert type(before) is type(after) is not Answer
    assert before.equals(after)
    assert (before.tied, before.margin(after)) == (after.tied, after.margin(before))


@pytest.mark.slow
def test_rows_of_detectors_take_little_room() -> None:
    decoder, tensors = detector()
    regressors = np.random.default_rng(0).random((1, *REGRESSORS.shape), np.float32)
    (row,) = pack_rows(tensors, [regressors, np.full((1, *SCORES.shape), -90, np.int8)])
    assert len(kept_row(decoder, np.asarray(row))) < 0.4 * row.nbytes


def test_outputs_that_are_not_finite_are_kept() -> None:
    decoder, tensors = detector()
    arrays = [np.zeros((1, *one.shape), one.dtype) for one in tensors]
    arrays[0][0, 0, 3] = np.nan
    (row,) = pack_rows(tensors, arrays)
    (after,) = decoder.read(batch_from_bytes(decoder, [kept_row(decoder, row)], {}))
    assert after.failure == "invalid-output"


@pytest.mark.parametrize("make", DECODERS, ids=["detector", "background", "masks", "values"])
@settings(max_examples=4)
@given(count=st.integers(1, 4))
def test_joined_rows_are_parted(
    make: Callable[[], tuple[Decoder, tuple[Tensor, ...]]], count: int
) -> None:
    decoder, tensors = make()
    kept = [kept_row(decoder, row_of(tensors, seed)) for seed in range(count)]
    assert parted(decoder, joined(decoder, kept), count) == kept
    for damaged, of in ((joined(decoder, kept) + b"\0", count), (joined(decoder, kept), 0)):
        with pytest.raises(UnreadableRowError, match=f"not those of {of} models"):
            parted(decoder, damaged, of)


@pytest.mark.parametrize("make", [masks, value_rows])
@pytest.mark.parametrize("damaged", [b"", b"no zlib", b"\x00" * 9])
def test_damaged_rows_are_refused(
    make: Callable[[], tuple[Decoder, tuple[Tensor, ...]]], damaged: bytes
) -> None:
    decoder, _ = make()
    with pytest.raises(UnreadableRowError, match="an answer"):
        restored_row(decoder, damaged)


def test_a_row_is_not_decompressed_beyond_its_size() -> None:
    decoder, tensors = masks()
    longer = np.zeros((1, 10_000_000), np.float32)
    with pytest.raises(ValueError, match=f"has not the {4 * 120} bytes"):
        restored_row(decoder, kept_row(decoder, longer[0]))
    assert tensors[0].shape == (1, 12, 10, 1)
