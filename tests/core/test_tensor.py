"""Values as the tensors of a model hold them."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflare.core.tensor import Tensor, quantize
from edgeflare.errors import UserError


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
