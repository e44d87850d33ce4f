"""The values of a constant as its file stores them: packed numbers and sparse tensors unpacked."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

PACKED: Mapping[int, tuple[int, int, int]] = {
    schema.TensorType.INT4: (4, -8, 7),
    schema.TensorType.UINT4: (4, 0, 15),
    schema.TensorType.INT2: (2, -2, 1),
}
"""Types of several numbers in a byte, the first one lowest: bits, smallest and largest number."""


def unpacked_numbers(raw: bytes, tensor_type: int, count: int) -> NDArray[np.generic]:
    """Return the first numbers of packed ones, (count,) int8 or, where none is negative, uint8."""
    bits, lowest, _ = PACKED[tensor_type]
    places = np.arange(0, 8, bits, dtype=np.uint8)
    octets = np.frombuffer(raw, np.uint8)[:, None]
    numbers: NDArray[np.uint8] = (octets >> places & (2**bits - 1)).ravel()[:count]
    # The sign is the highest bit: subtracting it twice makes the upper half negative.
    sign = 2 ** (bits - 1)
    return (numbers ^ sign).astype(np.int8) - np.int8(sign) if lowest < 0 else numbers


def places_of_sparse(sparsity: Any, shape: tuple[int, ...]) -> tuple[NDArray[np.int64], ...]:
    """Return where the stored values of a sparse tensor stand, one array for each dimension.

    Args:
        sparsity: the tensor's `SparsityParametersT`. Its levels are the tensor's dimensions and
            then those within blocks, in the order of traversal; each is dense or compressed.
        shape: of the tensor.

    Raises:
        ValueError: there are more than the shape has room for; a damaged file raises other errors.

    """
    levels, room = np.zeros((1, 0), np.int64), prod(shape)
    for level in sparsity.dimMetadata:
        if level.format == schema.DimensionType.DENSE:
            if len(levels) * level.denseSize > room:
                raise ValueError("it has more values than its shape has room for")
            counts = np.full(len(levels), level.denseSize)
            inner = np.tile(np.arange(level.denseSize), len(levels))
        else:
            counts = np.diff(np.asarray(level.arraySegments.values, np.int64))
            inner = np.asarray(level.arrayIndices.values, np.int64)
        levels = np.hstack([np.repeat(levels, counts, axis=0), inner[:, None]])
    place = np.zeros((len(levels), len(shape)), np.int64)
    order = [int(one) for one in sparsity.traversalOrder]
    for at, level in enumerate(order):
        if level < len(shape):
            place[:, level] += levels[:, at] * _block_size(sparsity, order, level, len(shape))
        else:
            place[:, int(sparsity.blockMap[level - len(shape)])] += levels[:, at]
    return tuple(place.T)


def _block_size(sparsity: Any, order: list[int], dimension: int, rank: int) -> int:
    """Return how many values along a dimension a block has; 1 where blocks do not cut it."""
    blocked = [] if sparsity.blockMap is None else [int(one) for one in sparsity.blockMap]
    if dimension not in blocked:
        return 1
    level = order.index(rank + blocked.index(dimension))
    return int(sparsity.dimMetadata[level].denseSize)
