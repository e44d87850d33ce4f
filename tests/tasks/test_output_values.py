from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.core.output_decoders import batch_from_bytes
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.core.tensor_rows import pack_rows
from edgeflare.tasks.classification import ClassDecoder
from edgeflare.tasks.output_values import output_values

SCORES = Tensor("scores", (1, 4), "int8", 0.1, 5)
AREA = Tensor("area", (1, 1), "float32")
STATE = Tensor("state", (1, 3), "float32")


@given(arrays(np.int8, (5, 4)), st.permutations([AREA, SCORES, STATE]))
def test_one_output_is_read_alike_alone_and_among_others(
    raw: NDArray[np.int8], row: list[Tensor]
) -> None:
    others = {one: np.full((5, *one.shape), np.nan, np.float32) for one in (AREA, STATE)}
    packed = pack_rows(row, [raw if one == SCORES else others[one] for one in row])
    alone = ClassDecoder(SCORES, "logits")
    among = ClassDecoder(SCORES, "logits", tuple(row))
    blobs = [one.tobytes() for one in packed]
    for batch in (RawBatch(packed), batch_from_bytes(among, blobs, {})):
        for one, other in zip(alone.read(RawBatch(raw)), among.read(batch), strict=True):
            assert (one.decision, one.tied) == (other.decision, other.tied)
            np.testing.assert_array_equal(one.scores, other.scores)


@pytest.mark.parametrize("outputs", [(SCORES,), (AREA, SCORES)])
def test_rows_of_another_size_are_invalid(outputs: tuple[Tensor, ...]) -> None:
    values = output_values(RawBatch(np.ones((2, 7), np.int8), {1: "hang"}), outputs, -1)
    assert values.failures == {0: "invalid-output", 1: "hang"}
    assert values.real.shape == (2, 1, 4)


def test_values_that_are_not_finite_are_invalid_and_zero() -> None:
    raw = np.array([[0.5], [np.nan], [np.inf]], np.float32)
    values = output_values(RawBatch(raw, {2: "crash"}), (AREA,), 0)
    assert values.failures == {1: "invalid-output", 2: "crash"}
    assert values.real.ravel().tolist() == [0.5, 0.0, 0.0]
