"""Rows: the inputs or outputs of a model as one array, whose rows have all tensors of one item.

They are what batches carry, so that nothing between a model and the decoder of its outputs has to
know how many tensors there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import Tensor


@dataclass(frozen=True, slots=True)
class GivenRows:
    """What a model is given for a batch.

    Attributes:
        rows: its inputs; see `Evaluator`.
        features: the same before they were quantized, where the task reads them; else None.

    """

    rows: NDArray[np.generic]
    features: NDArray[np.generic] | None = None


def row_layout(tensors: Sequence[Tensor]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return the shape and the dtype of one row.

    Of one tensor it is the tensor itself, without a batch dimension of 1. Of several it is their
    bytes, one tensor behind the other: (bytes,), uint8.
    """
    if len(tensors) == 1:
        (tensor,) = tensors
        shape = tensor.shape[1:] if tensor.shape[:1] == (1,) else tensor.shape
        return shape, np.dtype(tensor.dtype)
    return (sum(map(tensor_bytes, tensors)),), np.dtype(np.uint8)


def tensor_bytes(tensor: Tensor) -> int:
    """Return the size of a tensor."""
    return prod(tensor.shape) * np.dtype(tensor.dtype).itemsize


def pack_rows(
    tensors: Sequence[Tensor], arrays: Sequence[NDArray[np.generic]]
) -> NDArray[np.generic]:
    """Return the rows of a batch.

    Args:
        tensors: the inputs or outputs of a model.
        arrays: one for each of them, (batch, *shape) in its dtype; dimensions of 1 may differ.

    Returns:
        (batch, *row), see `row_layout`.

    Raises:
        ValueError: an array has another size or dtype than its tensor.

    """
    batch = len(arrays[0])
    for tensor, array in zip(tensors, arrays, strict=True):
        if array.dtype != tensor.dtype or array.size != batch * prod(tensor.shape):
            raise ValueError(
                f"{tensor.name} is {array.dtype} {array.shape}, expected {tensor.dtype} "
                f"({batch}, {', '.join(map(str, tensor.shape))})"
            )
    shape, dtype = row_layout(tensors)
    if len(tensors) == 1:
        return arrays[0].reshape(batch, *shape)
    parts = [np.ascontiguousarray(array).reshape(batch, -1).view(dtype) for array in arrays]
    return np.concatenate(parts, axis=1)


def unpack_rows(
    tensors: Sequence[Tensor], rows: NDArray[np.generic]
) -> tuple[NDArray[np.generic], ...]:
    """Return the arrays of a batch's rows: one for each tensor, (batch, *shape) in its dtype."""
    batch = len(rows)
    raw = np.ascontiguousarray(rows).reshape(batch, -1).view(np.uint8)
    arrays = []
    start = 0
    for tensor in tensors:
        stop = start + tensor_bytes(tensor)
        part = np.ascontiguousarray(raw[:, start:stop]).view(tensor.dtype)
        arrays.append(part.reshape(batch, *tensor.shape))
        start = stop
    return tuple(arrays)


def unpack_tensor(
    tensors: Sequence[Tensor], rows: NDArray[np.generic], at: int
) -> NDArray[np.generic]:
    """Return the array of one tensor of a batch's rows: (batch, *shape) in its dtype.

    Args:
        tensors: the inputs or outputs of a model.
        rows: (batch, *row); see `row_layout`.
        at: the position of the tensor.

    Raises:
        ValueError: the rows are not as long as those of these tensors.

    """
    if len(tensors) == 1:
        return rows.reshape(len(rows), *tensors[0].shape)
    start = sum(map(tensor_bytes, tensors[:at]))
    raw = rows.reshape(len(rows), sum(map(tensor_bytes, tensors)))
    part = np.ascontiguousarray(raw[:, start : start + tensor_bytes(tensors[at])])
    return part.view(tensors[at].dtype).reshape(len(rows), *tensors[at].shape)
