from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.core.tensor import Tensor
from edgeflare.core.tensor_rows import pack_rows, row_layout, unpack_rows, unpack_tensor

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
